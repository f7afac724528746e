"""Calls for which the Amazon provider has no operator of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.providers.amazon.aws.hooks.base_aws import AwsBaseHook
from airflow.providers.amazon.aws.hooks.s3 import S3Hook
from airflow.providers.amazon.aws.operators.base_aws import AwsBaseOperator
from airflow.providers.amazon.aws.utils.mixins import aws_template_fields
from airflow.providers.common.compat.sdk import AirflowException
from botocore.exceptions import BotoCoreError, ClientError

from orchestration.airflow import sending
from orchestration.airflow.calling import CallMixin
from orchestration.airflow.context import fail, value
from orchestration.airflow.outputs import taken
from orchestration.airflow.sending import Request
from orchestration.backends.airflow.calls import decode_outputs
from orchestration.errors import RunError
from orchestration.expressions import Json
from orchestration.graph import Retry

if TYPE_CHECKING:
    from airflow.sdk import Context


class _Configured(AwsBaseOperator[AwsBaseHook]):
    """Shows its request in the UI, as the provider's SageMaker operators do."""

    aws_hook_class = AwsBaseHook
    template_fields: Sequence[str] = aws_template_fields("config")
    template_fields_renderers: ClassVar[dict[str, str]] = {"config": "json"}

    def __init__(self, *, config: Mapping[str, Json], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.config = config


class AwsCallOperator(CallMixin, _Configured):
    """One operation of any AWS API."""

    @property
    def _hook_parameters(self) -> dict[str, Any]:
        return {**super()._hook_parameters, "client_type": self.call["service"]}


class ReadOperator(AwsBaseOperator[S3Hook]):
    """A JSON object in S3, as outputs."""

    aws_hook_class = S3Hook

    def __init__(
        self,
        *,
        uri: Json,
        outputs: Mapping[str, Any],
        loop: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.uri = uri
        self.outputs = outputs
        self.loop = loop

    def execute(self, context: Context) -> Any:
        """The outputs."""
        uri = str(value(context, self.uri, self.loop))
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        request = Request("s3", "GetObject", {"Bucket": bucket, "Key": key})
        try:
            response = sending.send(sending.client(self.hook), request, Retry())
        except (ClientError, BotoCoreError) as error:
            code, message = sending.told(error)
            if isinstance(error, ClientError) and not sending.passes(error, Retry()):
                fail(context, code, f"{uri}: {message}")
            raise AirflowException(f"{code}: {uri}: {message}") from error
        return self._outputs(context, response, uri)

    def _outputs(self, context: Context, response: Any, uri: str) -> dict[str, Json]:
        try:
            document = json.loads(response["Body"])
        except ValueError as error:
            fail(context, "WrongOutput", f"{uri} is no JSON: {error}")
        try:
            return taken(decode_outputs(self.outputs), document, uri)
        except RunError as error:
            fail(context, error.error, error.cause)
