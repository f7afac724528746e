"""The llm-fsx pipeline as an Airflow DAG, on its schedule. Put your own values in."""

from orchestration.airflow import dag

REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"

llm_fsx = dag(
    "llm_fsx.yaml",
    parameters={
        "role": "arn:aws:iam::111122223333:role/SageMakerExecution",
        "bucket": "amzn-s3-demo-bucket",
        "data": "s3://amzn-s3-demo-source-bucket/corpus",
        "training_image": f"{REGISTRY}/pytorch-training:2.8.0-gpu-py312",
        "subnet": "subnet-0123456789abcdef0",
        "security_group": "sg-0123456789abcdef0",
    },
)
