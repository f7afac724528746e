"""The last lines that the jobs, endpoints and components of failed stages have logged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from orchestration.execution.clients import send
from orchestration.execution.effects import Request
from orchestration.execution.reading.job_logs import last_lines
from orchestration.execution.reading.tracebacks import end_of
from orchestration.execution.sending import native, service_error
from orchestration.expressions import Json
from orchestration.local.run.keeping import serving
from orchestration.local.run.report import StageReport

if TYPE_CHECKING:
    from orchestration.local.account.records import RecordedCall
    from orchestration.local.server.embedded import EmbeddedAws

_KINDS: Final = ("TrainingJob", "ProcessingJob", "TransformJob")


def with_logs(
    stages: tuple[StageReport, ...], calls: Iterable[RecordedCall], aws: EmbeddedAws
) -> tuple[StageReport, ...]:
    """Return the reports of stages, failed ones with the last lines of what failed in them."""
    if all(stage.state != "failed" for stage in stages):
        return stages
    account = aws.state()["sagemaker"]
    served = [*serving(calls)]

    def logged(stage: StageReport) -> StageReport:
        if stage.state != "failed":
            return stage
        names = (name for owner, name in served if owner == stage.name)
        return replace(stage, log=(*_lines(stage, account, aws),) or (*_of_models(names, aws),))

    return tuple(map(logged, stages))


def _of_models(names: Iterable[str], aws: EmbeddedAws) -> Iterator[str]:
    """Yield the last lines of the processes that load models and answer requests."""
    for name in names:
        lines = aws.logs(name).splitlines()
        if lines:
            yield f"the last lines of {name}:"
            yield from end_of(lines)


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
