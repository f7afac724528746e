"""A script that judges the answers to cases, in a processing job that reads them from S3.

Wherever else it ran (in the process of a run, in a function of Lambda), it would be on one backend
only, and with the permissions of whatever deploys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from pydantic import Field

from orchestration.errors import Problem
from orchestration.expressions import Compare, Function, Result, Tree, apply, join
from orchestration.graph import Call, Operation, Output, Read, Require, Step
from orchestration.refs import Expression
from orchestration.stages.processing.request import (
    INPUT,
    OUTPUT,
    Job,
    code,
    read,
    script,
    written,
)
from orchestration.stages.stage import Context
from orchestration.stages.training.container import Framework
from orchestration.stages.values import Gibibytes, Model, Seconds, Source, Text

TEXT: Final = "text"
"""The output of a request that is the answer as it came."""
_ETAG: Final = "etag"
_ANSWERS: Final = "answers"
_VERDICT: Final = "verdict"


class JudgingJob(Model):
    """The processing job in which a script judges answers."""

    image: Text | None = None
    """A container with ``python3``, by its registry path; by default that of the model."""
    framework: Framework | None = None
    """Instead: AWS's own container of a framework."""
    instance_type: Text = "ml.m5.large"
    """Machine of the job."""
    volume_gib: Gibibytes = 30
    """GiB of the machine's volume."""
    max_runtime_s: Seconds = Field(default=3600, le=5 * 86_400)
    """Seconds after which SageMaker stops the job."""

    def problems(self) -> Iterator[Problem]:
        """Yield the error of two containers."""
        if self.image is not None and self.framework is not None:
            yield Problem("framework", "there is an image already; remove one of them")

    def registry_path(self, context: Context, default: Text) -> Text:
        """Return the container; ``default`` is that of the model."""
        if self.framework is not None:
            return self.framework.registry_path(context.region, self.instance_type)
        return default if self.image is None else self.image


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """The steps that record answers, and let a script judge them."""

    source: Source
    asked: JudgingJob
    context: Context
    stage: str
    name: str
    """The beginning of the names of the steps: ``deploy.trial``."""
    image: Text
    interval_s: float

    def recorded(self, number: int, case: Mapping[str, Tree], after: tuple[str, ...]) -> Call:
        """Return the step that writes an answer, each into a file of its own.

        Step Functions carries 256 KiB, which several answers together may exceed.
        """
        uri = join(self._place(_ANSWERS), f"/{number:02}.json")
        request: dict[str, Tree] = {
            "Bucket": apply(Function.S3_BUCKET, uri),
            "Key": apply(Function.S3_KEY, uri),
            "Body": {**case, "answer": Result(f"{self.name}_{number}", TEXT)},
            "ContentType": "application/json",
        }
        return Call(
            name=f"{self.name}_{number}_recorded",
            operation=Operation("s3", "PutObject", request),
            outputs={_ETAG: Output(("ETag",), kind="string")},
            after=after,
        )

    def judged(
        self,
        recorded: Sequence[Call],
        error: str,
        remedy: str | Expression[object],
        after: tuple[str, ...],
    ) -> tuple[Step, ...]:
        """Return the job, and what its verdict must be; a failed one has ``error``, too."""
        token = self._token(recorded)
        verdicts = join(self._place(_VERDICT), "/", token)
        call = self._job(token, verdicts).call(f"{self.name}_judge", self.interval_s)
        verdict = Read(
            name=f"{self.name}_verdict",
            uri=join(verdicts, f"/{_VERDICT}.json"),
            outputs={
                "passed": Output(("passed",)),
                "reason": Output(("reason",), kind="string", default="it gives no reason"),
            },
            after=(call.name,),
        )
        required = Require(
            name=f"{self.name}_judged",
            condition=Compare("eq", Result(verdict.name, "passed"), True),
            error=error,
            cause=join(
                f"{self.source.entry_point} refuses the answers: ",
                *(Result(verdict.name, "reason"), "; ", remedy),
            ),
            after=(verdict.name,),
        )
        return replace(call, after=after), verdict, required

    def _token(self, recorded: Sequence[Call]) -> Expression[object]:
        """Return what tells a verdict from others: the run, the script and the answers.

        A further attempt at the run asks again. The same answers have the verdict that they had,
        and are paid for once; others, or a script that was mended, have one of their own.
        """
        kind = self.name.rpartition(".")[2]
        answers = [part for call in recorded for part in (" ", Result(call.name, _ETAG))]
        whole = (self.context.resource_name(self.stage), f"/{kind} ", script(self.source), " ")
        return apply(Function.HASH, join(*whole, self.context.source(self.source), *answers))

    def _job(self, token: Expression[object], verdicts: Expression[str]) -> Job:
        context = self.context
        return Job(
            name=join(context.name_prefix(self.stage), token),
            context=context,
            image=self.asked.registry_path(context, self.image),
            entrypoint=("python3", script(self.source)),
            arguments=("--answers", f"{INPUT}/{_ANSWERS}", "--output", OUTPUT),
            inputs=(code(self.source, context), read(_ANSWERS, self._place(_ANSWERS))),
            outputs=(written(_VERDICT, verdicts, OUTPUT),),
            cluster={
                "InstanceCount": 1,
                "InstanceType": self.asked.instance_type,
                "VolumeSizeInGB": self.asked.volume_gib,
            },
            max_runtime_s=self.asked.max_runtime_s,
            tags=context.tag_list(self.stage),
        )

    def _place(self, folder: str) -> Expression[str]:
        return self.context.location(self.stage, self.name.rpartition(".")[2], folder)
