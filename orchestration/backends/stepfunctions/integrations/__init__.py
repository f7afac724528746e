"""The integrations that send a request: ``.sync``, which also waits for a job, and ``aws-sdk``.

Both know a field of an API only some time after the API has it, and end the run with
``States.Runtime`` where a request has one that they don't know. ``newer.csv`` says for each field
newer than what is known to work what is certain; ``sources.csv`` says where that is from.
``services`` has the names by which they know the services of AWS.
"""
