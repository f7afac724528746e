"""The last lines that the jobs of failed stages have logged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from orchestration.execution.clients import send
from orchestration.execution.effects import Request
from orchestration.execution.reading.job_logs import last_lines
from orchestration.execution.sending import native, service_error
from orchestration.expressions import Json
from orchestration.local.run.report import StageReport

if TYPE_CHECKING:
    from orchestration.local.server.embedded import EmbeddedAws

_KINDS: Final = ("TrainingJob", "ProcessingJob", "TransformJob")


def with_logs(stages: tuple[StageReport, ...], aws: EmbeddedAws) -> tuple[StageReport, ...]:
    """Return the reports of stages, failed ones with the last lines of the job that failed."""
    if all(stage.state != "failed" for stage in stages):
        return stages
    account = aws.state()["sagemaker"]
    return tuple(
        replace(stage, log=tuple(_lines(stage, account, aws))) if stage.state == "failed" else stage
        for stage in stages
    )


def _lines(stage: StageReport, account: Mapping[str, Any], aws: EmbeddedAws) -> Iterator[str]:
    def answer(request: Request) -> Json:
        try:
            return native(send(aws.client(request.service), request))
        except ClientError as error:
            raise service_error(error) from error

    polls = (
        Request("sagemaker", f"Describe{kind}", {f"{kind}Name": name})
        for name in reversed(stage.job_names)
        for kind in _KINDS
        if account.get(f"{kind}s", {}).get(name, {}).get(f"{kind}Status") == "Failed"
    )
    last = next(polls, None)
    if last is not None:
        yield from last_lines(last, answer)
