"""The estimators of the SageMaker Python SDK V2 as training jobs."""
