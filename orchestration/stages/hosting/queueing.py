"""A request that is put into an endpoint's queue, and the wait for what becomes of it in S3.

https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-check-predictions.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from orchestration.expressions import Compare, Function, Result, Tree, apply, join
from orchestration.graph import (
    Call,
    Choose,
    ErrorPattern,
    Failure,
    Graph,
    Operation,
    Output,
    Permission,
    Recovery,
    Require,
    Retry,
    Step,
)
from orchestration.refs import Expression
from orchestration.stages.endpoints.cases import SmokeTest
from orchestration.stages.hosting.fields import Asynchronous
from orchestration.stages.values import Text

_WITHIN_S: Final = 900.0
"""Seconds that SageMaker gives a request by default: botocore's InvocationTimeoutSeconds, 1.43."""
_ROUNDS_S: Final = (30.0, 60.0, 120.0, 240.0, 450.0)
"""The same, divided by looks for a failure: one is noticed after twice the time that it took."""
_EVERY_S: Final = 10.0
_MISSING: Final = ErrorPattern("NoSuchKey")
_NONE: Final = "AnswerMissing"
_JSON: Final = "application/json"
_REMEDY: Final = (
    "the endpoint serves, and has not answered the smoke_test; see its log, and the answers that "
    "are errors beside the others"
)


@dataclass(frozen=True, slots=True)
class Queued:
    """A smoke test of an asynchronous endpoint."""

    stage: str
    test: SmokeTest
    endpoint: Text
    asynchronous: Asynchronous
    place: Expression[str]
    """The S3 URI that the request gets."""

    @property
    def permissions(self) -> tuple[Permission, ...]:
        """Needs beyond the calls: S3 denies a missing object to those who may not list."""
        uris = (self.asynchronous.output_uri, self.asynchronous.failure_uri)
        buckets = [apply(Function.S3_BUCKET, uri) for uri in uris if uri is not None]
        places = tuple(join("arn:{partition}:s3:::", bucket) for bucket in buckets)
        return (Permission(actions=("s3:ListBucket",), resources=tuple(dict.fromkeys(places))),)

    def steps(self, after: tuple[str, ...]) -> tuple[Step, ...]:
        """Return the steps; the last one has the ``answer``."""
        written = Call(
            name=f"{self.stage}.request",
            operation=Operation(
                *("s3", "PutObject"),
                {**_at(self.place, self.place), "Body": cast(Tree, self.test.body)},
            ),
            after=after,
        )
        asked: dict[str, Tree] = {
            "EndpointName": self.endpoint,
            "InputLocation": self.place,
            "ContentType": self.test.content_type,
            "Accept": _JSON,
        }
        fails = self.asynchronous.failure_uri is not None
        failure = {"failure": Output(("FailureLocation",), kind="string")} if fails else {}
        invoked = Call(
            name=f"{self.stage}.invoke",
            operation=Operation("sagemaker-runtime", "InvokeEndpointAsync", asked),
            outputs={"location": Output(("OutputLocation",), kind="string"), **failure},
            after=(written.name,),
        )
        if not fails:
            return written, invoked, self._answer(_WITHIN_S, 1, (invoked.name,))
        return (written, invoked, *self._rounds(_ROUNDS_S, 1, (invoked.name,)))

    def _rounds(
        self, rounds: Sequence[float], number: int, after: tuple[str, ...]
    ) -> tuple[Step, ...]:
        """Return a wait for the answer, and where it is late a look for a failure, and the next."""
        seconds, *later = rounds
        answer = replace(
            self._answer(seconds, number, after),
            outputs={
                "answer": Output(("Body",), parse=True),
                "tag": Output(("ETag",), kind="string"),
            },
            recoveries=(Recovery(_MISSING, {"answer": None, "tag": ""}),),
            failure=None,
        )
        failed = self._failed(number)
        if later:
            then = self._rounds(later, number + 1, (failed[-1].name,))
            value = Result(then[-1].name, "answer")
        else:
            then = (self._missing(answer.name, failed[-1].name),)
            value = Result(answer.name, "answer")
        late = Choose(
            name=f"{self.stage}.late{_numbered(number)}",
            condition=Compare("eq", Result(answer.name, "tag"), ""),
            then=Graph((*failed, *then)),
            otherwise=Graph(),
            collect={"answer": value},
            absent={"answer": Result(answer.name, "answer")},
        )
        return answer, late

    def _answer(self, seconds: float, number: int, after: tuple[str, ...]) -> Call:
        return Call(
            name=f"{self.stage}.answer{_numbered(number)}",
            operation=self._read(self.asynchronous.output_uri, "location"),
            outputs={"answer": Output(("Body",), parse=True)},
            retry=Retry(busy=(_MISSING,), busy_interval_s=_EVERY_S, busy_timeout_s=seconds),
            failure=Failure(error=_NONE, remedy=_REMEDY, only=_MISSING.code),
            after=after,
        )

    def _missing(self, answer: str, after: str) -> Require:
        """Return the requirement that fails where there is neither an answer nor an error."""
        return Require(
            name=f"{self.stage}.answered",
            condition=Compare("ne", Result(answer, "tag"), ""),
            error=_NONE,
            cause=join(f"stage {self.stage}: no answer within {_WITHIN_S:g} s; {_REMEDY}"),
            after=(after,),
        )

    def _failed(self, number: int) -> tuple[Call, Require]:
        """Return the look for an error, and the requirement that there is none."""
        look = Call(
            name=f"{self.stage}.failure{_numbered(number)}",
            operation=self._read(self.asynchronous.failure_uri, "failure"),
            outputs={
                "error": Output(("Body",), kind="string"),
                "tag": Output(("ETag",), kind="string"),
            },
            recoveries=(Recovery(_MISSING, {"error": "", "tag": ""}),),
        )
        none = Require(
            name=f"{self.stage}.unfailed{_numbered(number)}",
            condition=Compare("eq", Result(look.name, "tag"), ""),
            error="AnswerFailed",
            cause=join(
                f"stage {self.stage}: the endpoint serves, and answered the smoke_test with an "
                "error: ",
                Result(look.name, "error"),
            ),
        )
        return look, none

    def _read(self, bucket: Tree, location: str) -> Operation:
        key = Result(f"{self.stage}.invoke", location)
        return Operation("s3", "GetObject", _at(bucket, key), decrypts=self.asynchronous.kms_key)


def _numbered(number: int) -> str:
    return "" if number == 1 else f"_{number}"


def _at(bucket: Tree, key: Tree) -> dict[str, Tree]:
    return {"Bucket": apply(Function.S3_BUCKET, bucket), "Key": apply(Function.S3_KEY, key)}
