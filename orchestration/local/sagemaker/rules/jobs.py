"""The rules of training and processing jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.local.account.rules import Rule

_REFUSED = "ValidationException"
_GROUPS = "guide: https://docs.aws.amazon.com/sagemaker/latest/dg/train-heterogeneous-cluster.html"
_POOLS = "guide: https://docs.aws.amazon.com/sagemaker/latest/dg/train-warm-pools.html"
_FILES = "guide: https://docs.aws.amazon.com/sagemaker/latest/dg/model-access-training-data.html"
_PYTHON_SDK = "issue: https://github.com/aws/sagemaker-python-sdk/issues"

JOBS: Final[Mapping[str, Rule]] = {
    # CreateTrainingJob: the cluster and the time
    "cluster is required": Rule(
        _REFUSED, "ResourceConfig is required", "model: CreateTrainingJob; wording assumed"
    ),
    "time is required": Rule(
        _REFUSED, "StoppingCondition is required", "model: CreateTrainingJob; wording assumed"
    ),
    "type or groups": Rule(
        _REFUSED,
        "ResourceConfig must have exactly one of InstanceType, InstanceGroups and "
        "InstancePreferences; it has {ways}.",
        f"{_GROUPS}; wording assumed",
    ),
    "count of a type": Rule(
        _REFUSED,
        "ResourceConfig must have an InstanceCount of 1 or more.",
        "model: ResourceConfig.InstanceCount; wording assumed",
    ),
    "groups have names": Rule(
        _REFUSED, "Instance group {name} is named more than once.", f"{_GROUPS}; wording assumed"
    ),
    "channels name groups": Rule(
        _REFUSED,
        "Channel {channel} names instance group {name}, which does not exist.",
        f"{_GROUPS}; wording assumed",
    ),
    "all channels name groups": Rule(
        _REFUSED,
        "Some channels have assigned instance groups: [{assigned}] while others not: [{others}]",
        f"{_PYTHON_SDK}/6089",
    ),
    "wait needs spot": Rule(
        _REFUSED,
        "Invalid MaxWaitTimeInSeconds. It is only supported when EnableManagedSpotTraining is set "
        "to true",
        "issue: https://github.com/Kenza-AI/sagify/issues/111",
    ),
    "spot needs wait": Rule(
        _REFUSED,
        "Invalid MaxWaitTimeInSeconds. It must be present and be greater than or equal to "
        "MaxRuntimeInSeconds",
        "model: StoppingCondition.MaxWaitTimeInSeconds; wording assumed",
    ),
    "28 days": Rule(
        _REFUSED,
        "Invalid MaxRuntimeInSeconds {runtime}. It must be at most 2419200.",
        "model: StoppingCondition.MaxRuntimeInSeconds; wording assumed",
    ),
    "pools and spot": Rule(
        _REFUSED,
        "KeepAlivePeriodInSeconds is not supported with managed spot training.",
        f"{_POOLS}; wording assumed",
    ),
    "pools and groups": Rule(
        _REFUSED,
        "KeepAlivePeriodInSeconds is not supported with InstanceGroups.",
        f"{_POOLS}; wording assumed",
    ),
    "an hour of pool": Rule(
        _REFUSED,
        "Invalid KeepAlivePeriodInSeconds {period}. It must be at most 3600.",
        f"{_POOLS}; wording assumed",
    ),
    "keys of local storage": Rule(
        _REFUSED,
        "VolumeKmsKeyId is not supported for instance type {type}, which has local storage.",
        "model: ResourceConfig.VolumeKmsKeyId; wording assumed",
    ),
    # CreateTrainingJob: the image and the data
    "training image's region": Rule(
        _REFUSED,
        "Invalid DNS suffix 'amazonaws.com' for region '{other}' in training image. Please provide "
        "the valid <region>.<dns-suffix>: '{region}.amazonaws.com'",
        "issue: https://github.com/aws-samples/mlops-amazon-sagemaker/issues/9",
    ),
    "channels once": Rule(
        _REFUSED,
        "Channel name {channel} is used more than once.",
        "model: Channel.ChannelName; wording assumed",
    ),
    "objects in S3": Rule(
        _REFUSED,
        'No S3 objects found under S3 URL "{uri}" given in input data source. Please ensure that '
        "the bucket exists in the selected region ({region}), that objects exist under that S3 "
        'prefix, and that the role "{role}" has "s3:ListBucket" permissions on bucket "{bucket}".',
        "issue: https://github.com/aws/amazon-sagemaker-examples/issues/2489 (training jobs), "
        "2414 (transform jobs)",
    ),
    "augmented manifests are piped": Rule(
        _REFUSED,
        "Channel {channel}: AugmentedManifestFile is only supported with InputMode Pipe.",
        "model: S3DataSource.S3DataType; wording assumed",
    ),
    "compressed data is piped": Rule(
        _REFUSED,
        "Channel {channel}: CompressionType is only supported with InputMode Pipe.",
        "model: Channel.CompressionType; wording assumed",
    ),
    "mounts need a VPC": Rule(
        _REFUSED,
        "VpcConfig is required for a FileSystemDataSource",
        f"{_FILES}; wording assumed",
    ),
    "zone of the file system": Rule(
        _REFUSED,
        "File system {system} is in {zone}, where the job has no subnet.",
        f"{_FILES}; wording assumed; perhaps the job fails instead",
    ),
    # CreateProcessingJob
    "processing image's region": Rule(
        _REFUSED,
        "Invalid region {other} in image URI {image}. Please provide an image URI in region "
        "{region}.",
        "issue: https://github.com/aws/amazon-sagemaker-examples/issues/2422",
    ),
    "inputs once": Rule(
        _REFUSED,
        "Input name {name} is used more than once.",
        "model: ProcessingInput.InputName; wording assumed",
    ),
    "outputs once": Rule(
        _REFUSED,
        "Output name {name} is used more than once.",
        "model: ProcessingOutput.OutputName; wording assumed",
    ),
    "local paths once": Rule(
        _REFUSED,
        "LocalPath {path} is used by more than one input.",
        f"{_PYTHON_SDK}/4939; wording assumed",
    ),
    "inputs below /opt/ml/processing": Rule(
        _REFUSED,
        "LocalPath {path} of input {name} must begin with /opt/ml/processing/.",
        "model: ProcessingS3Input.LocalPath; wording assumed",
    ),
    "compressed inputs are piped": Rule(
        _REFUSED,
        "Input {name}: S3CompressionType Gzip is only supported with S3InputMode Pipe.",
        "model: ProcessingS3Input.S3CompressionType; wording assumed",
    ),
    # CreateTransformJob
    "batches are of records": Rule(
        _REFUSED,
        "BatchStrategy MultiRecord requires a SplitType other than None.",
        "model: CreateTransformJobRequest.BatchStrategy; wording assumed",
    ),
    "100 MB of payload": Rule(
        _REFUSED,
        "MaxPayloadInMB times MaxConcurrentTransforms must not exceed 100, got {size}.",
        "model: CreateTransformJobRequest.MaxPayloadInMB; wording assumed",
    ),
    "filters are JSONPath": Rule(
        _REFUSED,
        "{field} is not a JSONPath expression: {path}",
        "model: DataProcessing.InputFilter; wording assumed",
    ),
    # Names and states
    "training names once": Rule(
        "ResourceInUse",
        "Training job names must be unique within an AWS account and region, and a training job "
        "with this name already exists ({arn})",
        "issue: https://github.com/aws/amazon-sagemaker-examples/pull/3108",
    ),
    "processing names once": Rule(
        "ResourceInUse",
        "Processing job names must be unique within an AWS account and region, and a processing "
        "job with this name already exists ({arn})",
        "model: CreateProcessingJob, ResourceInUse; wording assumed (that of training jobs)",
    ),
    "transform names once": Rule(
        "ResourceInUse",
        "Transform job names must be unique within an AWS account and region, and a transform job "
        "with this name already exists ({arn})",
        "model: CreateTransformJob, ResourceInUse; wording assumed (that of training jobs)",
    ),
    "jobs exist": Rule(
        _REFUSED,
        "Requested resource not found.",
        "guide: https://docs.aws.amazon.com/sagemaker/latest/APIReference/"
        "API_DescribeTrainingJob.html; code assumed",
    ),
    "jobs to stop run": Rule(
        _REFUSED,
        "The request was rejected because the {kind} job is in status {status}.",
        "issue: https://github.com/awslabs/benchmark-ai/issues/928",
    ),
}
