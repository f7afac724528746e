"""The fields of a batch transform, and the request that follows from them alone."""

from __future__ import annotations

from typing import Any, Final, Literal

from pydantic import Field

from orchestration.expressions import Function, apply
from orchestration.graph import Operation
from orchestration.stages.capacity import Hours
from orchestration.stages.serving.containers import SequenceFields
from orchestration.stages.stage import Context
from orchestration.stages.values import (
    Count,
    Extra,
    ExtraRequest,
    Model,
    Seconds,
    Source,
    StandIn,
    Text,
    Vpc,
)

LARGEST_MB: Final = 100


class TransformRequests(Model):
    """Further fields of the requests of a batch transform, as AWS names them."""

    CreateModel: Extra = {}
    """Of the model."""
    CreateTransformJob: Extra = {}
    """Of the job."""

    def merged(self, operation: str, request: dict[str, Any]) -> Operation:
        """Return an operation with its further fields; ``ValueError`` for one that is set."""
        whole = ExtraRequest.merged(request, getattr(self, operation), operation)
        return Operation("sagemaker", operation, whole)


class TransformSettings(Model):
    """The container of a batch transform's model, how it is sent data, and the machines."""

    image: Text | None = None
    """The inference container, by its registry path."""
    source: Source | None = None
    """Code of ``model_fn`` and so on, which lies beside the model; its entry point is a module at
    the top of its folder."""
    environment: dict[str, Text] = Field(default={}, max_length=100)
    """Of the model's container."""
    content_type: str | None = None
    """``text/csv``, ``application/json``, ``application/jsonlines``, or any other."""
    compression: Literal["none", "gzip"] = "none"
    """Compression of the data's objects."""
    split: Literal["none", "line", "record_io", "tf_record"] = "none"
    """The way to split an object into records; ``none``: it is sent whole."""
    strategy: Literal["single_record", "multi_record"] | None = None
    """Records of a request: one, or as many as ``max_payload_mb`` holds; needs a ``split``."""
    accept: str | None = None
    """The content type of the answers."""
    assemble: Literal["none", "line"] = "none"
    """``line``: a new line behind each answer."""
    input_filter: str | None = None
    """JSONPath of the part of a record that the model gets: ``$[1:]``, ``$.features``."""
    join_input: bool = False
    """Put each answer beside the record it belongs to."""
    output_filter: str | None = None
    """JSONPath of the part that is written: ``$[0,-1]``, ``$['id','SageMakerOutput']``."""
    max_payload_mb: int | None = Field(default=None, ge=0, le=LARGEST_MB)
    """Largest body of a request, in MB; by default AWS's 6."""
    max_concurrency: int | None = Field(default=None, ge=0, le=LARGEST_MB)
    """Requests at a time that each instance gets."""
    instance_type: Text
    """Machines of the job: ``ml.m5.large``."""
    instance_count: Count = 1
    """Machines of the job."""
    volume_kms_key: Text | None = None
    """KMS key that encrypts the machines' volumes."""
    max_runtime_s: Seconds = Field(default=86_400, le=28 * 86_400)
    """The run stops the job after so long."""
    local: StandIn | None = None
    """The program that serves on the embedded AWS in the place of the image's own: it answers
    ``GET /ping`` and ``POST /invocations`` on the port in ``SAGEMAKER_BIND_TO_PORT``."""
    extra_request: TransformRequests = TransformRequests()
    """Further fields, by operation: ``{CreateModel: {…}, CreateTransformJob: {…}}``."""


class TransformFields(TransformSettings, SequenceFields):
    """The fields of a batch transform."""

    kind: Literal["batch_transform"] = "batch_transform"
    model_data: Text | None = None
    """S3 URI of a directory with the model's files (``evaluate.outputs.best_checkpoint``), or of a
    ``model.tar.gz`` (``train.outputs.model_artifacts``, with ``model_archive: true``)."""
    model_archive: bool = False
    """``model_data`` is a ``model.tar.gz``, not a directory."""
    model_name: Text | None = None
    """Instead of ``model_data`` and ``image``: a model that exists, and stays."""
    keep_model: bool = False
    """Do not delete the model at the end."""
    vpc: Vpc | None = None
    """Subnets and security groups of the model's container."""
    enable_network_isolation: bool = False
    """The model's container reaches no network."""
    data: Text
    """S3 URI of the folder with the data: at most 100,000 objects."""
    one_file: bool = False
    """``data`` is the S3 URI of a single object. No other key may begin as its own does: SageMaker
    would send those, too."""
    output_uri: Text | None = None
    """S3 URI of the predictions; by default the run's own place in the workspace."""
    output_kms_key: Text | None = None
    """KMS key that encrypts the predictions."""
    wait_for_capacity_h: Hours | None = None
    """Hours, from the first request on, in which the machines are requested again and again where
    there is no capacity or quota. ``None``: they are requested once."""
    poll_interval_s: Seconds = 30
    """Seconds between two questions about the job's status."""

    def made_name(self, context: Context) -> Text:
        """Return the name of the model that is made, or exists."""
        return context.resource_name(self.name) if self.model_name is None else self.model_name

    def location(self, context: Context) -> Text:
        """Return the S3 URI of the predictions."""
        return context.location(self.name) if self.output_uri is None else self.output_uri

    def request(self, context: Context) -> dict[str, Any]:
        """Return ``CreateTransformJob``'s request."""
        request: dict[str, Any] = {
            "TransformJobName": context.resource_name(self.name),
            "ModelName": self.made_name(context),
            "TransformInput": self._input(),
            "TransformOutput": _present(
                S3OutputPath=self.location(context),
                Accept=self.accept,
                AssembleWith="Line" if self.assemble == "line" else None,
                KmsKeyId=self.output_kms_key,
            ),
            "TransformResources": _present(
                InstanceType=self.instance_type,
                InstanceCount=self.instance_count,
                VolumeKmsKeyId=self.volume_kms_key,
            ),
            "Tags": context.tag_list(self.name),
        }
        strategies = {"single_record": "SingleRecord", "multi_record": "MultiRecord", None: None}
        filters = _present(
            InputFilter=self.input_filter,
            OutputFilter=self.output_filter,
            JoinSource="Input" if self.join_input else None,
        )
        return request | _present(
            BatchStrategy=strategies[self.strategy],
            MaxPayloadInMB=self.max_payload_mb,
            MaxConcurrentTransforms=self.max_concurrency,
            DataProcessing=filters if filters else None,
        )

    def _input(self) -> dict[str, Any]:
        # With a slash at its end, so that what is sent is what was listed, and no sibling's.
        place = self.data if self.one_file else apply(Function.DIRECTORY, self.data)
        splits = {"line": "Line", "record_io": "RecordIO", "tf_record": "TFRecord", "none": None}
        return _present(
            DataSource={"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": place}},
            ContentType=self.content_type,
            CompressionType="Gzip" if self.compression == "gzip" else None,
            SplitType=splits[self.split],
        )


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
