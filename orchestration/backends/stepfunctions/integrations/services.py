"""The names that Step Functions has for the services of AWS.

Names and prefixes of errors are those of the AWS SDK for Java, from
https://docs.aws.amazon.com/step-functions/latest/dg/supported-services-awssdk.html (read November
2026). The page lists over two hundred services; those that a training pipeline may use are
here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from orchestration.checks.shapes import service_names


@dataclass(frozen=True, slots=True)
class Service:
    """A service as the ``aws-sdk`` integration knows it."""

    name: str
    """``arn:aws:states:::aws-sdk:<name>:<operation>``."""
    prefix: str
    """The beginning of the names of its errors."""
    refuses: frozenset[str] = frozenset()
    """Operations without an integration."""
    named_errors: frozenset[str] | None = None
    """The codes that have their own errors, without ``Exception``; ``None``: all of them.

    Other codes come under the one name ``<prefix>.<prefix>Exception``, without the code in the
    cause."""

    @property
    def unnamed(self) -> str:
        """The name under which errors come that the service's model doesn't declare."""
        return f"{self.prefix}.{self.prefix}Exception"


_STREAMS = frozenset({"InvokeEndpointWithResponseStream"})

# Declared errors: the services' models in botocore 1.42 and 1.43, November 2026.
_SAGEMAKER_ERRORS = frozenset(
    {"Conflict", "ResourceInUse", "ResourceLimitExceeded", "ResourceNotFound"}
)
_RUNTIME_ERRORS = frozenset(
    {"InternalDependency", "InternalFailure", "ModelError", "ModelNotReady", "ServiceUnavailable"}
)
_S3_ERRORS = frozenset(
    {
        "BucketAlreadyExists",
        "BucketAlreadyOwnedByYou",
        "InvalidObjectState",
        "NoSuchBucket",
        "NoSuchKey",
        "NoSuchUpload",
    }
)
_FSX_ERRORS = frozenset(
    {
        *("AccessPointAlreadyOwnedByYou", "ActiveDirectoryError", "BackupBeingCopied"),
        *("BackupInProgress", "BackupNotFound", "BackupRestoring", "BadRequest"),
        *("DataRepositoryAssociationNotFound", "DataRepositoryTaskEnded"),
        *("DataRepositoryTaskExecuting", "DataRepositoryTaskNotFound", "FileCacheNotFound"),
        *("FileSystemNotFound", "IncompatibleParameterError", "IncompatibleRegionForMultiAZ"),
        *("InternalServerError", "InvalidAccessPoint", "InvalidDataRepositoryType"),
        *("InvalidDestinationKmsKey", "InvalidExportPath", "InvalidImportPath"),
        *("InvalidNetworkSettings", "InvalidPerUnitStorageThroughput", "InvalidRegion"),
        *("InvalidRequest", "InvalidSourceKmsKey", "MissingFileCacheConfiguration"),
        *("MissingFileSystemConfiguration", "MissingVolumeConfiguration"),
        *("NotServiceResourceError", "ResourceDoesNotSupportTagging", "ResourceNotFound"),
        *("S3AccessPointAttachmentNotFound", "ServiceLimitExceeded", "SnapshotNotFound"),
        *("SourceBackupUnavailable", "StorageVirtualMachineNotFound", "TooManyAccessPoints"),
        *("UnsupportedOperation", "VolumeNotFound"),
    }
)
_CLOUDFORMATION_ERRORS = frozenset(
    {
        *("AlreadyExists", "CFNRegistry", "ChangeSetNotFound", "ConcurrentResourcesLimitExceeded"),
        *("CreatedButModified", "GeneratedTemplateNotFound", "HookResultNotFound"),
        *("InsufficientCapabilities", "InvalidChangeSetStatus", "InvalidOperation"),
        *("InvalidStateTransition", "LimitExceeded", "NameAlreadyExists"),
        *("OperationIdAlreadyExists", "OperationInProgress", "OperationNotFound"),
        *("ResourceScanInProgress", "ResourceScanLimitExceeded", "ResourceScanNotFound"),
        *("StackInstanceNotFound", "StackNotFound", "StackRefactorNotFound"),
        *("StackSetNotEmpty", "StackSetNotFound", "StaleRequest", "TokenAlreadyExists"),
        *("TypeConfigurationNotFound", "TypeNotFound"),
    }
)
_DATASYNC_ERRORS = frozenset({"Internal", "InvalidRequest"})
_S3_CONTROL_ERRORS = frozenset(
    {
        *("BadRequest", "Idempotency", "InternalService", "InvalidNextToken", "InvalidRequest"),
        *("JobStatus", "NoSuchPublicAccessBlockConfiguration", "NotFound", "TooManyRequests"),
        "TooManyTags",
    }
)

_SERVICES = {
    "application-autoscaling": Service("applicationautoscaling", "ApplicationAutoScaling"),
    "athena": Service("athena", "Athena"),
    "batch": Service("batch", "Batch"),
    "bedrock": Service("bedrock", "Bedrock"),
    "cloudformation": Service(
        "cloudformation", "CloudFormation", named_errors=_CLOUDFORMATION_ERRORS
    ),
    "cloudwatch": Service("cloudwatch", "CloudWatch"),
    "codebuild": Service("codebuild", "CodeBuild"),
    "codepipeline": Service("codepipeline", "CodePipeline"),
    "databrew": Service("databrew", "DataBrew"),
    "datasync": Service("datasync", "DataSync", named_errors=_DATASYNC_ERRORS),
    "dynamodb": Service("dynamodb", "DynamoDb"),
    "ec2": Service("ec2", "Ec2"),
    "ecr": Service("ecr", "Ecr"),
    "ecs": Service("ecs", "Ecs"),
    "efs": Service("efs", "Efs"),
    "eks": Service("eks", "Eks"),
    "emr": Service("emr", "Emr"),
    "emr-containers": Service("emrcontainers", "EmrContainers"),
    # Used under this name by AWS's own constructs (awslabs/data-solutions-framework-on-aws); the
    # beginning of its errors' names is that of the AWS SDK for Java, which nobody could try.
    "emr-serverless": Service("emrserverless", "EmrServerless"),
    "events": Service("eventbridge", "EventBridge"),
    "firehose": Service("firehose", "Firehose"),
    "fsx": Service("fsx", "FSx", named_errors=_FSX_ERRORS),
    "glue": Service("glue", "Glue"),
    "iam": Service("iam", "Iam"),
    "kinesis": Service("kinesis", "Kinesis", frozenset({"SubscribeToShard"})),
    "kms": Service("kms", "Kms"),
    "lakeformation": Service("lakeformation", "LakeFormation"),
    "lambda": Service("lambda", "Lambda", frozenset({"InvokeWithResponseStream"})),
    "logs": Service("cloudwatchlogs", "CloudWatchLogs", frozenset({"StartLiveTail"})),
    "rds-data": Service("rdsdata", "RdsData", frozenset({"ExecuteSql"})),
    "redshift-data": Service("redshiftdata", "RedshiftData"),
    "s3": Service("s3", "S3", frozenset({"SelectObjectContent"}), _S3_ERRORS),
    "s3control": Service("s3control", "S3Control", named_errors=_S3_CONTROL_ERRORS),
    "sagemaker": Service("sagemaker", "SageMaker", named_errors=_SAGEMAKER_ERRORS),
    "sagemaker-featurestore-runtime": Service(
        "sagemakerfeaturestoreruntime", "SageMakerFeatureStoreRuntime"
    ),
    "sagemaker-metrics": Service("sagemakermetrics", "SageMakerMetrics"),
    "sagemaker-runtime": Service("sagemakerruntime", "SageMakerRuntime", _STREAMS, _RUNTIME_ERRORS),
    "scheduler": Service("scheduler", "Scheduler"),
    "secretsmanager": Service("secretsmanager", "SecretsManager"),
    "servicediscovery": Service("servicediscovery", "ServiceDiscovery"),
    "sns": Service("sns", "Sns"),
    "sqs": Service("sqs", "Sqs"),
    "ssm": Service("ssm", "Ssm"),
    "stepfunctions": Service("sfn", "Sfn"),
    "sts": Service("sts", "Sts"),
}


_OF_OTHER_NAMES = {
    "applicationdiscovery": "discovery",
    "cognitoidentityprovider": "cognito-idp",
    "config": "config",
    "configservice": "config",
    "costandusagereport": "cur",
    "costexplorer": "ce",
    "databasemigration": "dms",
    "directory": "ds",
    "directoryservice": "ds",
    "elasticloadbalancing": "elb",
    "elasticloadbalancingv2": "elbv2",
    "elasticsearch": "es",
    "iotdataplane": "iot-data",
    "iotjobsdataplane": "iot-jobs-data",
    "lexmodelbuilding": "lex-models",
    "lexmodelsv2": "lexv2-models",
    "lexruntime": "lex-runtime",
    "lexruntimev2": "lexv2-runtime",
    "marketplaceentitlement": "marketplace-entitlement",
    "marketplacemetering": "meteringmarketplace",
    "migrationhub": "mgh",
    "pinpointsmsvoice": "sms-voice",
    "serverlessapplicationrepository": "serverlessrepo",
    "simpledb": "sdb",
}
"""boto3's names of services that no stage uses, where they are not Step Functions' own."""


@cache
def _boto_names() -> Mapping[str, str]:
    """Return boto3's names of all services that botocore ships, by those of Step Functions."""
    joined = {name.replace("-", "").replace(".", ""): name for name in service_names()}
    ours = {service.name: name for name, service in _SERVICES.items()}
    known = joined | ours | _OF_OTHER_NAMES
    renamed = {*ours.values(), *_OF_OTHER_NAMES.values()} - {"config"}
    return {
        name: boto
        for name, boto in known.items()
        if name in ours or name in _OF_OTHER_NAMES or boto not in renamed
    }


def names() -> frozenset[str]:
    """Return the names that Step Functions has for the services of AWS."""
    return frozenset(_boto_names())


def boto_name(name: str) -> str:
    """Return boto3's name of a service that Step Functions names so, or the name itself."""
    return _boto_names().get(name, "" if name in _boto_names().values() else name)


def known() -> tuple[str, ...]:
    """Return boto3's names of the services that have an integration."""
    return tuple(_SERVICES)


def service(name: str) -> Service:
    """Return a service by boto3's client name."""
    if name in _SERVICES:
        return _SERVICES[name]
    joined = name.replace("-", "")
    return Service(joined, joined.capitalize())


def resource(name: str, operation: str) -> str:
    """Return the resource of a Task that sends one request and takes the response."""
    return f"arn:aws:states:::aws-sdk:{service(name).name}:{camel(operation)}"


def camel(operation: str) -> str:
    """Return an operation as Step Functions writes it: ``createTrainingJob``."""
    return operation[0].lower() + operation[1:]
