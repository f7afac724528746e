"""The ways in which a job ends without completing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from orchestration.local.account.protocol import ServiceError


class JobFailed(Exception):
    """The job ends as Failed; the exception's text is its FailureReason."""


class Interrupted(Exception):
    """The job has lost its instances, and begins again on others."""


class JobStopped(Exception):
    """The job ends as Stopped, with a secondary status and, unless requested, a reason."""

    def __init__(self, secondary_status: str = "Stopped", reason: str | None = None) -> None:
        super().__init__(secondary_status)
        self.secondary_status = secondary_status
        self.reason = reason


@contextmanager
def uploading() -> Iterator[None]:
    """Fail the job where S3 refuses its results.

    The words are those of https://github.com/aws/amazon-sagemaker-examples/issues/3881.
    """
    try:
        yield
    except ServiceError as error:
        raise JobFailed(f"ClientError: Artifact upload failed: {error}") from error
