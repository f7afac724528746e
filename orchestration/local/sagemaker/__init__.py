"""SageMaker, simulated: its jobs and endpoints really run, as processes of this machine."""
