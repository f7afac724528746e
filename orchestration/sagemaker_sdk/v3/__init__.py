"""The ``ModelTrainer`` of the SageMaker Python SDK V3 as a training job, and back."""
