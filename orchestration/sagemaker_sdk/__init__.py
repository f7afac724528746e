"""The bridge from and to objects of the SageMaker Python SDK, V2 and V3.

The caller imports the SDK; this package only reads the attributes of its objects.

>>> from orchestration.sagemaker_sdk import from_estimator, settings  # doctest: +SKIP
>>> train = from_estimator(estimator, {"training": "s3://bucket/data"})  # doctest: +SKIP
>>> Pipeline(name="mine", stages=[train], **settings(estimator))  # doctest: +SKIP
"""

from orchestration.sagemaker_sdk.differences import DIFFERENCES, Difference
from orchestration.sagemaker_sdk.v2.estimators import from_estimator, settings
from orchestration.sagemaker_sdk.v3.to_trainer import to_model_trainer
from orchestration.sagemaker_sdk.v3.trainers import from_model_trainer

__all__ = [
    "DIFFERENCES",
    "Difference",
    "from_estimator",
    "from_model_trainer",
    "settings",
    "to_model_trainer",
]
