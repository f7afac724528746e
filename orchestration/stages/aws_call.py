"""Any operation of any AWS service, once or until the job that it starts has ended.

Names are those of botocore's clients, as in the API reference of each service.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

from typing_extensions import override

from orchestration.checks.requests import operation_model
from orchestration.checks.responses import (
    kind_at,
    listed,
    misplaced,
    path_to,
    shape_at,
    unknown,
)
from orchestration.checks.shapes import Shape
from orchestration.errors import Problem, near
from orchestration.expressions import Function, Result, Tree, apply, join, substitute, walk
from orchestration.graph import (
    Adopt,
    Call,
    ErrorPattern,
    Operation,
    Output,
    Permission,
    Step,
    Until,
)
from orchestration.refs import Expression, Ref
from orchestration.stages import functions
from orchestration.stages.calling import following, lists
from orchestration.stages.calling.fields import Answer, Needs, Poll, Request
from orchestration.stages.calling.returned import required, without_failing, worded
from orchestration.stages.outputs import Kind, NamedOutputs, Outputs
from orchestration.stages.stage import SAMPLE, Context, Fragment, Stage
from orchestration.stages.values import Extra, Name

_STARTING = re.compile(r"Batch|Copy|Create|Execute|Import|Invoke|Publish|Put|Run|Send|Start|Submit")


def _kind_of(stage: AwsCall, name: str) -> Kind | None:
    """Return the type of an output, as botocore's model has it."""
    poll = stage.poll
    if name in stage.results and listed(stage.results[name]) is not None and not stage._invokes:
        return "list"
    if name in stage.results or poll is None:
        kind = kind_at(stage.service, stage.operation, stage.results[name])
    else:
        kind = kind_at(stage.service, poll.operation, poll.outputs[name])
    return kind if kind in ("string", "number") else None


class AwsCall(Stage):
    """Call an operation of AWS, and wait for what it starts if there is a ``poll``.

    The request and every place in a response are checked against botocore's model. A token by which
    the service recognises a repeated request is filled in where it has one, so that a call whose
    response was lost starts nothing twice; where it has none, name the error of ``exists``, or let
    a warning remind you.
    """

    kind: Literal["aws_call"] = "aws_call"
    service: str
    """botocore's name of the service: ``glue``, ``athena``, ``sns``, ``stepfunctions``."""
    operation: str
    """``StartJobRun``."""
    request: Extra = {}
    """The request's fields, as AWS names them; references may stand anywhere in them."""
    results: dict[Name, str] = {}
    """The stage's outputs, by their places in the response: ``{run: JobRunId}``,
    ``{name: Items[0].Name}``. They are texts, numbers and booleans, or lists of texts or numbers
    for ``for_each``: ``{tasks: "taskArns[]"}``, ``{names: "Items[].Name"}``; what a function of
    Lambda returns is any JSON, and its places continue behind the payload:
    ``{score: Payload.score}``."""
    poll: Poll | None = None
    """The way to wait for what the call starts; by default its response ends the stage."""
    exists: Answer | None = None
    """The error by which the operation says that an earlier attempt of this run got through."""
    permissions: tuple[Needs, ...] = ()
    """Further permissions, for what AWS does in the caller's name."""
    outputs: ClassVar[Outputs[Any]] = NamedOutputs("named_outputs", _kind_of)

    @property
    def named_outputs(self) -> Mapping[str, str]:
        """The outputs of the call and of its poll, by their places in the responses."""
        return {**self.results, **({} if self.poll is None else self.poll.outputs)}

    @override
    def references(self) -> Iterator[tuple[str, Expression[object]]]:
        for path, node in super().references():
            if not (isinstance(node, Ref) and node.stage == self.name):
                yield path, node

    @override
    def check(self, context: Context = SAMPLE) -> Iterator[Problem]:
        yield from unknown("operation", self.service, self.operation)
        yield from self._places("results", self.operation, self._by_service)
        if self._invokes:
            yield from functions.problems(self.request, self.results)
        yield from self._own("request", self.request, ())
        if self.exists is not None and self.results:
            yield Problem(
                "results",
                "where the call is answered by `exists` there is no response; take outputs from "
                "the poll's: poll.outputs",
            )
        poll = self.poll
        if poll is None:
            return
        for field, asked in (("poll", poll), ("poll.stop", poll.stop)):
            if asked is not None:
                yield from unknown(f"{field}.operation", self.service, asked.operation)
                yield from self._own(f"{field}.request", asked.request, self.results)
        for name in sorted(self.results.keys() & poll.outputs.keys()):
            yield Problem(f"poll.outputs.{name}", "is an output of the call itself already")
        if poll.gone is not None and poll.outputs:
            yield Problem("poll.outputs", "where the poll ends by `gone` there is no response")
        yield from self._places("poll.outputs", poll.operation, poll.outputs)
        for name, place in poll.outputs.items():
            if listed(place) is not None:
                yield Problem(f"poll.outputs.{name}", "lists are results of the call itself")
        places = {"status": poll.status, **({} if poll.reason is None else {"reason": poll.reason})}
        yield from self._places("poll", poll.operation, places)
        yield from self._statuses(poll)

    @override
    def warnings(self) -> Iterator[Problem]:
        if _STARTING.match(self.operation) and self.exists is None and not self._tokens():
            yield Problem(
                "operation",
                f"{self.operation} has no token by which {self.service} recognises a repeated "
                "request: where a response is lost, or a worker dies, it may be done twice; name "
                "the error of what `exists` already, if it has one",
            )

    @override
    def lower(self, context: Context) -> Fragment:
        step = f"{self.name}.call"
        call = Call(
            name=step,
            operation=Operation(self.service, self.operation, self._whole(context)),
            outputs={**self._taken(self.operation, self._by_service), **self._for_polls()},
            until=self._until(step),
            adopt=None if self.exists is None else Adopt(exists=_pattern(self.exists)),
        )
        needs = tuple(
            Permission(actions=n.actions, resources=n.resources) for n in self.permissions
        )
        values: dict[str, Tree] = {name: Result(step, name) for name in self.named_outputs}
        values |= {n: lists.value(step, n, place) for n, place in self._by_service.items()}
        steps = functions.followed(call, self.results) if self._invokes else self._followed(call)
        return Fragment(steps=steps, outputs=values, permissions=needs)

    def _followed(self, call: Call) -> tuple[Step, ...]:
        """Return the call with what fails the run where a response lacks something."""
        ends = {} if self.poll is None else self.poll.outputs
        # A job is not waited for where the answer to the call itself lacks something already.
        later = self.results if self.poll is None else {}
        own = {name: place for name, place in later.items() if listed(place) is None}
        until, outputs = call.until, without_failing(call.outputs, own)
        subject = f"stage {self.name}: {self.service}"
        if until is not None:
            until = replace(until, outputs=without_failing(until.outputs, ends))
            outputs = worded(outputs, self.results, f"{subject}:{self.operation}")
        asked = replace(call, outputs=outputs, until=until)
        steps = lists.followed(asked, self.results)
        operations = {
            **dict.fromkeys(own, self.operation),
            **({} if self.poll is None else dict.fromkeys(ends, self.poll.operation)),
        }
        for output, operation in operations.items():
            place = {output: self.named_outputs[output]}
            steps = (*steps, *required(asked, place, f"{subject}:{operation}", steps[-1]))
        return steps

    @property
    def _invokes(self) -> bool:
        """Return whether it runs a function of Lambda."""
        return (self.service, self.operation) == ("lambda", "Invoke")

    @property
    def _by_service(self) -> dict[str, str]:
        """Return the results whose places are in the service's own response."""
        if not self._invokes:
            return self.results
        return {n: p for n, p in self.results.items() if functions.inside(p) is None}

    def _until(self, step: str) -> Until | None:
        poll = self.poll
        if poll is None:
            return None
        return Until(
            poll=self._operation(poll, step),
            status=path_to(poll.status),
            success=frozenset(poll.success),
            failure=frozenset(poll.failure),
            reason=None if poll.reason is None else path_to(poll.reason),
            gone=None if poll.gone is None else _pattern(poll.gone),
            stop=None if poll.stop is None else self._operation(poll.stop, step),
            interval_s=poll.interval_s,
            timeout_s=poll.timeout_s,
            outputs=self._taken(poll.operation, poll.outputs),
        )

    def _operation(self, asked: Request, step: str) -> Operation:
        def own(node: Expression[object]) -> Tree:
            if isinstance(node, Ref) and node.stage == self.name:
                return Result(step, node.output)
            return node

        request = {name: substitute(value, own) for name, value in asked.request.items()}
        own_fields = self._own_fields(asked)
        given = {name: Result(step, name) for name in self._answered(asked)}
        return Operation(self.service, asked.operation, {**own_fields, **given, **request})

    def _own_fields(self, asked: Request) -> dict[str, Tree]:
        """Return the fields that a following request needs, as the call's own request has them."""
        needed = following.lacking(self.service, asked.operation, asked.request)
        return {name: self.request[name] for name in needed if name in self.request}

    def _answered(self, asked: Request) -> list[str]:
        """Return the fields that a following request needs and that the call's response has."""
        if self.exists is not None:
            return []  # There may be no response.
        needed = following.lacking(self.service, asked.operation, asked.request)
        others = (name for name in needed if name not in self.request)
        return list(following.answered(self.service, self.operation, others))

    def _for_polls(self) -> dict[str, Output]:
        poll = self.poll
        asked = () if poll is None else (poll, *(() if poll.stop is None else (poll.stop,)))
        fields = {name: None for each in asked for name in self._answered(each)}
        return {name: lists.taken(self.service, self.operation, name) for name in fields}

    def _whole(self, context: Context) -> dict[str, Tree]:
        """Return the request with its tokens: equal in all attempts of a run, and in no other."""
        name = context.resource_name(self.name)
        parts = [apply(Function.HASH, join(name, f"-{part}")) for part in range(3)]
        return {**dict.fromkeys(self._tokens(), join(*parts)), **self.request}

    def _tokens(self) -> list[str]:
        model = operation_model(self.service, self.operation)
        shape = None if model is None else model.input_shape
        members = {} if shape is None else shape.members
        return [name for name, member in members.items() if member.metadata.get("idempotencyToken")]

    def _taken(self, operation: str, places: Mapping[str, str]) -> dict[str, Output]:
        return {n: lists.taken(self.service, operation, place) for n, place in places.items()}

    def _places(self, field: str, operation: str, places: Mapping[str, str]) -> Iterator[Problem]:
        for name, place in places.items():
            yield from misplaced(f"{field}.{name}", self.service, operation, place)

    def _statuses(self, poll: Poll) -> Iterator[Problem]:
        shape = shape_at(self.service, poll.operation, poll.status)
        known = shape.metadata.get("enum", ()) if isinstance(shape, Shape) else ()
        for field, statuses in (("success", poll.success), ("failure", poll.failure)):
            for number, status in enumerate(statuses):
                if known and status not in known:
                    yield Problem(
                        f"poll.{field}[{number}]",
                        f"{poll.status} is never {status!r}{near(status, known)}",
                    )
                if field == "failure" and status in poll.success:
                    yield Problem(f"poll.failure[{number}]", f"{status} is a success as well")

    def _own(self, field: str, request: Any, known: Collection[str]) -> Iterator[Problem]:
        """Yield the references to outputs of the stage itself that are not known by then."""
        for node in _refs(request):
            if node.stage == self.name and node.output not in known:
                yield Problem(
                    field, f"the call has no output {node.output!r}{near(node.output, known)}"
                )


def _pattern(answer: Answer) -> ErrorPattern:
    return ErrorPattern(answer.code, answer.message)


def _refs(tree: Any) -> Iterator[Ref[Any]]:
    if isinstance(tree, Expression):
        yield from (node for node in walk(tree) if isinstance(node, Ref))
    elif isinstance(tree, Mapping):
        for value in tree.values():
            yield from _refs(value)
    elif isinstance(tree, list | tuple):
        for value in tree:
            yield from _refs(value)
