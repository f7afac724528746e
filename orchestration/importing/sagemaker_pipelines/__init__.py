"""Definitions of SageMaker Pipelines as pipelines, step by step.

A step becomes the stage of its kind where that says all of it, else an ``aws_call`` with the step's
request as it is; a value that nothing here stands for becomes a parameter that runs must be given.
So nothing is lost in silence: each is told with its place.

https://aws-sagemaker-mlops.github.io/sagemaker-model-building-pipeline-definition-JSON-schema/
"""

from orchestration.importing.sagemaker_pipelines.importing import from_definition, is_definition

__all__ = ["from_definition", "is_definition"]
