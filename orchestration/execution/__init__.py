"""The performance of steps: the one meaning of each that every backend shares.

Nothing here knows an orchestrator, and nothing does I/O: performing a step yields effects
(a request to send, a pause, a job to follow) and is given responses, errors and the time. Whoever
acts (an Airflow operator, a trigger, the direct driver) answers the effects; the Step Functions
renderer takes the names of errors and the texts of their causes from here.
"""
