"""The integrations of Step Functions that are known here, and their names.

Sources, read November 2026:
<https://docs.aws.amazon.com/step-functions/latest/dg/supported-services-awssdk.html>,
<https://docs.aws.amazon.com/step-functions/latest/dg/connect-sagemaker.html>.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from orchestration.local.account import documents

# The name in a Resource, where it is not botocore's.
_BOTO_NAMES = {
    "applicationautoscaling": "application-autoscaling",
    "cloudwatchlogs": "logs",
    "emrcontainers": "emr-containers",
    "emrserverless": "emr-serverless",
    "eventbridge": "events",
    "rdsdata": "rds-data",
    "redshiftdata": "redshift-data",
    "sagemakerruntime": "sagemaker-runtime",
    "sagemakerfeaturestoreruntime": "sagemaker-featurestore-runtime",
    "sagemakermetrics": "sagemaker-metrics",
    "servicequotas": "service-quotas",
    "sfn": "stepfunctions",
    "elasticloadbalancingv2": "elbv2",
}
# The prefix of error names, where it is not the service id's words.
ERROR_PREFIXES = {
    "cloudwatchlogs": "CloudWatchLogs",
    "dynamodb": "DynamoDb",
    "ec2": "Ec2",
    "ecr": "Ecr",
    "ecs": "Ecs",
    "efs": "Efs",
    "fsx": "FSx",
    "iam": "Iam",
    "kms": "Kms",
    "s3": "S3",
    "sfn": "Sfn",
    "sns": "Sns",
    "sqs": "Sqs",
    "ssm": "Ssm",
    "sts": "Sts",
}
# moto's integrations beside those of this package.
OPTIMISED_BY_MOTO = (
    "apigateway",
    "batch",
    "dynamodb",
    "ecs",
    "events",
    "glue",
    "lambda",
    "sns",
    "sqs",
    "states",
)


@dataclass(frozen=True)
class SyncJob:
    """A kind of job whose end `.sync` waits for."""

    name_member: str
    status_member: str
    describe: str
    stop: str


SYNC_JOBS = {
    f"Create{kind}Job": SyncJob(
        f"{kind}JobName", f"{kind}JobStatus", f"Describe{kind}Job", f"Stop{kind}Job"
    )
    for kind in ("Training", "Processing", "Transform")
}
# Supported without `.sync`.
OPTIMISED_SAGEMAKER = {
    *SYNC_JOBS,
    "CreateEndpoint",
    "CreateEndpointConfig",
    "CreateHyperParameterTuningJob",
    "CreateLabelingJob",
    "CreateModel",
    "UpdateEndpoint",
}


def boto_name(service: str) -> str:
    """Return botocore's name of a service in a Resource."""
    return _BOTO_NAMES.get(service.lower(), service)


def api_name(action: str) -> str:
    """Return the API's name of an action: `CreateTrainingJob` for `createTrainingJob`."""
    return action[:1].upper() + action[1:]


@functools.cache
def operations(service: str) -> frozenset[str] | None:
    """Return the operations of a service in a Resource, or None if it is unknown."""
    model = documents.model(boto_name(service))
    return None if model is None else frozenset(model.operation_names)


@functools.cache
def service_id(service: str) -> str:
    """Return the words that AWS names a service in a Resource with: `EMR containers`."""
    return str(documents.model(boto_name(service)).service_id)
