"""Steps that make requests, of whatever definition, as the stages of a pipeline.

A step becomes the stage of its kind where that says all of it, else an ``aws_call`` with the step's
request as it is; a value that nothing here stands for becomes a parameter that runs must be given.
So nothing is lost in silence: each is told with its place. References are those of SageMaker
Pipelines: ``{"Get": "Steps.Train.ModelArtifacts.S3ModelArtifacts"}``.
"""
