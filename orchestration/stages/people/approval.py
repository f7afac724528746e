"""A person says yes or no.

The question and its answer are one small object in the run's own place, ``approval.json``: a run
asks by creating it where there is none, and an answer replaces it only while it is still the
question (``If-Match``). So the first answer counts, however it was given, and it means the same on
every backend; who may answer is who may write there.

Step Functions waits for a task token meanwhile, kept beside the question in ``token.json``: whoever
answers returns it, so that days of waiting cost a few events. A token alone would not do: it is
lost with the execution, no other backend has one, and it doesn't say who answered. Once the wait is
over it is of no use. It stands in the history of the execution, as whatever a Task sends does, and
in no log, definition or output.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field
from typing_extensions import override

from orchestration.expressions import Compare, Function, Result, Tree, apply, join, run_id
from orchestration.graph import (
    Adopt,
    Call,
    Operation,
    Output,
    Person,
    Read,
    Require,
    Step,
    Until,
)
from orchestration.refs import Expression, Ref
from orchestration.stages.outputs import Outputs, output
from orchestration.stages.people.places import ASKED, DECISIONS, QUESTION, STATE, TOKEN
from orchestration.stages.stage import Context, Fragment, Gate, Stage
from orchestration.stages.unchanged import WRITTEN_BEFORE
from orchestration.stages.values import Model, Text

REJECTED: Final = "Rejected"
"""The error of a run that a person has said no to."""
_POLL_S: Final = 15
_LONGEST_SUBJECT: Final = 100
"""https://docs.aws.amazon.com/sns/latest/api/API_Publish.html"""


@dataclass(frozen=True)
class ApprovalOutputs:
    """The answer, and who gave it."""

    approved: Ref[bool] = output(shown=True)
    by: Ref[str] = output(shown=True)
    """Whoever answered: the ARN of the caller."""
    at: Ref[str] = output(shown=True)
    """The time of the answer, in UTC: ``2026-11-22T09:30:00Z``."""
    comment: Ref[str] = output(shown=True)
    """The words that came with the answer; empty without."""


class Announcement(Model):
    """The topic that hears of the question, with the commands to answer it."""

    sns_topic: Text
    """Its ARN."""


class Approval(Stage):
    """Wait until a person says yes or no.

    ``orchestrate approve RUN STAGE`` and ``orchestrate reject RUN STAGE`` answer on every backend.
    The first answer counts. A run without an answer in time fails as ``TimedOut``.
    """

    kind: Literal["approval"] = "approval"
    question: Text
    """The question, for people to read: ``Deploy the new model?``."""
    answer_within_h: Annotated[int, Field(ge=1, le=720, strict=True)] = 168
    """Hours until the run fails if nobody has answered; 30 days at the most."""
    on_reject: Literal["fail", "stop", "go_on"] = "fail"
    """After a no, fail the run as ``Rejected``, leave out what follows and end well, or go on:
    what follows reads ``approved``."""
    notify: Announcement | None = None
    """Who is told that the run waits for an answer; by default nobody."""

    outputs: ClassVar[Outputs[ApprovalOutputs]] = Outputs(ApprovalOutputs)

    @override
    def lower(self, context: Context) -> Fragment:
        name = self.name
        approved = Compare("eq", Result(f"{name}.answer", "state"), DECISIONS[0])
        read = Read(
            name=f"{name}.read",
            uri=context.location(name, QUESTION),
            outputs={field: Output((field,), kind="string") for field in ("by", "at", "comment")},
            after=(f"{name}.answer",),
        )
        announced = () if self.notify is None else (self._announced(self.notify, context),)
        stopper = (self._stopper(approved),) if self.on_reject == "fail" else ()
        steps: tuple[Step, ...] = (
            self._asked(context),
            *announced,
            self._answered(context, (announced[0].name if announced else f"{name}.ask",)),
            read,
            *stopper,
        )
        outputs: dict[str, Tree] = {field: Result(read.name, field) for field in read.outputs}
        return Fragment(
            steps=steps,
            outputs={"approved": approved, **outputs},
            gate=None if self.on_reject == "go_on" else Gate(approved, self.on_reject),
        )

    def _asked(self, context: Context) -> Call:
        """Put the question where there is none; an earlier attempt of this run may have asked."""
        body = {
            STATE: ASKED,
            "question": self.question,
            "pipeline": context.pipeline,
            "stage": self.name,
        }
        request = {
            **self._object(context, QUESTION),
            "Body": body,
            "ContentType": "application/json",
            "Metadata": {STATE: ASKED},
            "IfNoneMatch": "*",
        }
        return Call(
            name=f"{self.name}.ask",
            operation=Operation("s3", "PutObject", request),
            adopt=Adopt(exists=WRITTEN_BEFORE),
        )

    def _announced(self, notify: Announcement, context: Context) -> Call:
        run = join(context.workspace_uri, "/", run_id())
        message = join(
            self.question,
            f"\n\n{context.pipeline} waits for an answer, {self.answer_within_h} hours at the "
            "most:\n\norchestrate approve ",
            run,
            f" {self.name}\norchestrate reject ",
            run,
            f" {self.name} --comment ...\n",
        )
        subject = f"{context.pipeline}: {self.name}"[:_LONGEST_SUBJECT]
        request = {"TopicArn": notify.sns_topic, "Subject": subject, "Message": message}
        return Call(
            name=f"{self.name}.announce",
            operation=Operation("sns", "Publish", request),
            after=(f"{self.name}.ask",),
        )

    def _answered(self, context: Context, after: tuple[str, ...]) -> Call:
        look = Operation("s3", "HeadObject", self._object(context, QUESTION))
        kept = {**self._object(context, TOKEN), "ContentType": "application/json"}
        return Call(
            name=f"{self.name}.answer",
            operation=look,
            until=Until(
                poll=look,
                status=("Metadata", STATE),
                success=frozenset(DECISIONS),
                failure=frozenset(),
                interval_s=_POLL_S,
                timeout_s=self.answer_within_h * 3600,
                outputs={"state": Output(("Metadata", STATE), kind="string")},
                person=Person(
                    question=self.question,
                    token=Operation("s3", "PutObject", kept),
                    field="Body",
                ),
            ),
            after=after,
        )

    def _stopper(self, approved: Expression[bool]) -> Require:
        by, at, comment = (Result(f"{self.name}.read", field) for field in ("by", "at", "comment"))
        return Require(
            name=f"{self.name}.approved",
            condition=approved,
            error=REJECTED,
            cause=join(f"stage {self.name}: ", by, " said no at ", at, "; comment: ", comment),
            after=(f"{self.name}.read",),
        )

    def _object(self, context: Context, name: str) -> dict[str, Tree]:
        uri = context.location(self.name, name)
        return {"Bucket": apply(Function.S3_BUCKET, uri), "Key": apply(Function.S3_KEY, uri)}
