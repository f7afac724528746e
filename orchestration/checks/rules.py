"""The rules of a well-formed workflow, one function each; :func:`problems` asks them all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from orchestration.checks.fallbacks import fallbacks
from orchestration.checks.references import outputs_of, references
from orchestration.checks.requests import has_output, operation_model, places, violations
from orchestration.errors import GraphError, Problem
from orchestration.expressions import Parameter
from orchestration.graph import (
    LATENCY,
    Call,
    Choose,
    Concluded,
    ForEach,
    Graph,
    Guarded,
    Operation,
    Output,
    Parallel,
    Read,
    Until,
    Workflow,
    all_steps,
    bodies,
    candidates,
    ordered,
)

STEP_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*(\.[a-z][a-z0-9]*(_[a-z0-9]+)*)*")
_WAITS: Final = (
    "waits for what it acquires, which nothing would release if the wait failed; wait in the body, "
    "by a call of the poll itself, and let the clean-up read only what the creating call gives"
)


def names(workflow: Workflow) -> Iterator[Problem]:
    """Step names are well formed and unique in the whole workflow."""
    counted = Counter(step.name for step in all_steps(workflow.graph))
    for name, count in counted.items():
        if STEP_NAME.fullmatch(name) is None:
            yield Problem("", "a step's name is snake case in segments joined by dots", step=name)
        if count > 1:
            yield Problem("", f"{count} steps have this name", step=name)


def acyclic(workflow: Workflow) -> Iterator[Problem]:
    """No steps wait for each other."""

    def each(graph: Graph) -> Iterator[Problem]:
        try:
            ordered(graph)
        except GraphError as error:
            yield from error.problems
        for step in graph.steps:
            for body in bodies(step):
                yield from each(body)

    yield from each(workflow.graph)


def concurrency(workflow: Workflow) -> Iterator[Problem]:
    """Every loop has room for an element."""
    for step in all_steps(workflow.graph):
        if isinstance(step, ForEach) and step.max_concurrency < 1:
            yield Problem("", "max_concurrency is at least 1", step=step.name)


def requests(workflow: Workflow) -> Iterator[Problem]:
    """Every request keeps to botocore's shapes, and every output can be in its response."""
    for step in all_steps(workflow.graph):
        for call in candidates(step) if isinstance(step, Call) else ():
            yield from _operation(call.name, call.operation, call.outputs)
            if call.until is not None:
                yield from _operation(call.name, call.until.poll, call.until.outputs)
                status = {"status": Output(call.until.status)}
                yield from _operation(call.name, call.until.poll, status, request=False)
                if call.until.stop is not None:
                    yield from _operation(call.name, call.until.stop, {})
                if call.until.person is not None:
                    yield from _operation(call.name, call.until.person.token, {})


def reports(workflow: Workflow) -> Iterator[Problem]:
    """A report is an object, and what is taken from it is JSON already."""
    for step in all_steps(workflow.graph):
        for name, output in step.outputs.items() if isinstance(step, Read) else ():
            if output.parse or not output.path:
                message = f"output {name!r}: expected a field of the report, as it stands there"
                yield Problem("", message, step=step.name)


def _operation(
    where: str, operation: Operation, outputs: Mapping[str, Output], *, request: bool = True
) -> Iterator[Problem]:
    if request:
        for problem in violations(operation.service, operation.name, operation.request):
            place = f"{operation.name} {problem.field}".rstrip()
            yield Problem(place, problem.message, step=where)
    known = operation_model(operation.service, operation.name) is not None
    for name, output in outputs.items():
        if known and not has_output(operation.service, operation.name, output.path):
            dotted = ".".join(str(part) for part in output.path)
            message = f"output {name!r}: a response has no {dotted}"
            yield Problem(operation.name, message, step=where)


def parameter_types(workflow: Workflow) -> Iterator[Problem]:
    """A parameter that goes into a request as it is has the type that the API takes there."""
    wanted = {
        "string": "string",
        "integer": "number",
        "long": "number",
        "float": "number",
        "double": "number",
        "boolean": "boolean",
    }
    types = {spec.name: spec.type for spec in workflow.parameters}
    for step in all_steps(workflow.graph):
        for call in candidates(step) if isinstance(step, Call) else ():
            operation = call.operation
            for path, kind, node in places(operation.service, operation.name, operation.request):
                if isinstance(node, Parameter) and node.name in types:
                    given, needed = types[node.name], wanted.get(kind)
                    if needed is not None and given != needed:
                        yield Problem(
                            f"{operation.name} {path}",
                            f"takes a {needed}, and the parameter {node.name!r} is a {given}; "
                            f"declare it with type: {needed}",
                            step=step.name,
                        )


def adoption(workflow: Workflow) -> Iterator[Problem]:
    """A call says one thing of an error: adopted, recovered with all outputs, or a failure."""
    for step in all_steps(workflow.graph):
        if isinstance(step, Call):
            if step.adopt is not None and step.outputs:
                yield Problem(
                    "", "adopts what exists, so its own response has no outputs", step=step.name
                )
            whole = step.failure is not None and not step.failure.only
            if whole and (step.adopt or step.fallback or step.recoveries):
                message = "reports its failures as an error of ours, so no error is an answer to it"
                yield Problem("", message, step=step.name)
            if step.may_fail and not _has_end(step):
                message = "may fail only as a job whose outputs all have defaults"
                yield Problem("", message, step=step.name)
            if step.timed and (step.until or step.pages or step.adopt or LATENCY in step.outputs):
                yield Problem("", f"only one plain request gives {LATENCY}", step=step.name)
            for recovery in step.recoveries:
                if set(recovery.outputs) != outputs_of(step) - ({LATENCY} if step.timed else set()):
                    yield Problem("", "a recovery gives exactly the step's outputs", step=step.name)


def _has_end(step: Call) -> bool:
    """Return whether all outputs of a call are known where the job that it waits for fails."""
    if step.until is None or step.outputs or step.failure is not None:
        return False
    return all(output.optional for output in step.until.outputs.values())


def shapes(workflow: Workflow) -> Iterator[Problem]:
    """Branches and bodies hold something, and a status says one thing."""
    for step in all_steps(workflow.graph):
        match step:
            case Choose(then=Graph(steps=()), otherwise=Graph(steps=()), collect=collect) if (
                not collect
            ):
                yield Problem("", "both branches are empty", step=step.name)
            case Choose(collect=collect, absent=absent) if collect.keys() != absent.keys():
                yield Problem("", "its two ways do not give the same outputs", step=step.name)
            case ForEach(body=Graph(steps=())):
                yield Problem("", "the loop's body is empty", step=step.name)
            case Guarded(cleanup=Graph(steps=())):
                yield Problem("", "the clean-up is empty", step=step.name)
            case Concluded(conclusion=Graph(steps=())):
                yield Problem("", "nothing is done after the end", step=step.name)
            case Parallel(branches=()):
                yield Problem("", "there is no branch", step=step.name)
            case Call(until=Until(success=success, failure=failure)) if success & failure:
                both = ", ".join(sorted(success & failure))
                yield Problem("", f"{both} can't be both success and failure", step=step.name)
            case _:
                pass


def guards(workflow: Workflow) -> Iterator[Problem]:
    """Nothing is acquired that a failure leaves: what is waited for is waited for in the body."""
    for step in all_steps(workflow.graph):
        if isinstance(step, Guarded) and step.acquire.until is not None:
            yield Problem("", _WAITS, step=step.acquire.name)


RULES: tuple[Callable[[Workflow], Iterator[Problem]], ...] = (
    names,
    acyclic,
    references,
    concurrency,
    requests,
    reports,
    parameter_types,
    adoption,
    fallbacks,
    shapes,
    guards,
)


def problems(workflow: Workflow) -> list[Problem]:
    """Everything that is wrong with a workflow."""
    return [problem for rule in RULES for problem in rule(workflow)]


def check(workflow: Workflow) -> Workflow:
    """The workflow itself, or a :class:`GraphError` with everything that is wrong with it."""
    found = problems(workflow)
    if found:
        raise GraphError(found)
    return workflow
