"""The bridge from and to objects of the SageMaker Python SDK, V2 and V3.

The caller imports the SDK; this package only reads the attributes of its objects.

>>> from orchestration.sagemaker_sdk import pipeline_from_estimator  # doctest: +SKIP
>>> inputs = {"training": "s3://bucket/data"}  # doctest: +SKIP
>>> pipeline_from_estimator(estimator, inputs, name="mine", workspace="s3://b/w")  # doctest: +SKIP
"""

from orchestration.sagemaker_sdk.differences import DIFFERENCES, Difference
from orchestration.sagemaker_sdk.v2.estimators import from_estimator, settings
from orchestration.sagemaker_sdk.v2.pipelines import pipeline_from_estimator
from orchestration.sagemaker_sdk.v3.to_trainer import to_model_trainer
from orchestration.sagemaker_sdk.v3.trainers import from_model_trainer

__all__ = [
    "DIFFERENCES",
    "Difference",
    "from_estimator",
    "from_model_trainer",
    "pipeline_from_estimator",
    "settings",
    "to_model_trainer",
]
