"""Settings of AWS clients, so that each request is sent once and exactly as its step has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from orchestration.execution.effects import Request

if TYPE_CHECKING:
    from botocore.config import Config


def one_attempt(**options: Any) -> Config:
    """Return a configuration under which botocore does not retry.

    Steps have rules of their own for that; botocore's on top would multiply the attempts.
    """
    from botocore.config import Config

    return Config(retries={"mode": "standard", "total_max_attempts": 1}, **options)


def keep_copy_source(client: Any) -> None:
    """Make a client send ``CopySource`` as it is given.

    A step says what S3 wants in the header, encoded; botocore would encode it once more.
    """
    from botocore.handlers import handle_copy_source_param

    event = "before-parameter-build.s3.CopyObject"
    client.meta.events.unregister(event, handle_copy_source_param)


def method(client: Any, request: Request) -> Any:
    """Return the client's method for a request's operation."""
    from botocore import xform_name

    return getattr(client, xform_name(request.operation))
