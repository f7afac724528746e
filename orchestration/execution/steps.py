"""Steps, performed: a graph of them from its beginning to its end.

What runs side by side always runs to its end, as it does in a state machine: the graph fails after
that, with the first failure in the order of the graph. Steps that an earlier performance of the
same run has finished are not performed again, where their outputs were kept.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never, cast

from orchestration.errors import ExpressionError, RunError
from orchestration.execution import wording
from orchestration.execution.calls import called
from orchestration.execution.effects import (
    Aborted,
    Acquiring,
    Begun,
    Broke,
    Finished,
    Now,
    Outputs,
    Performance,
    Recall,
    Rest,
    ServiceError,
    Together,
    Trouble,
)
from orchestration.execution.outputs import checked_results
from orchestration.execution.places import Attempt
from orchestration.execution.reading import reports
from orchestration.execution.refusals import error_name
from orchestration.execution.scope import Scope, kept_values
from orchestration.execution.sending import passes
from orchestration.expressions import Json, Tree, evaluate
from orchestration.graph import (
    Call,
    Choose,
    Clock,
    Concluded,
    Fail,
    ForEach,
    Graph,
    Guarded,
    Parallel,
    Read,
    Require,
    Retry,
    Step,
    Wait,
    upstream,
)
from orchestration.graph.composition import Branches, Part, Series, compose

Ending = Exception | None
"""The error that something ended with; ``None`` if it ended well."""


def performed(graph: Graph, scope: Scope, attempt: Attempt) -> Performance[None]:
    """Perform a graph; the results are in the scope then.

    Raises :class:`~orchestration.errors.RunError` with the first failure, and
    :class:`~orchestration.execution.effects.Aborted` where it was ended from outside, after
    everything that ran was stopped and every clean-up was performed.
    """
    if graph.steps:
        steps = {step.name: step for step in graph.steps}
        part = compose(list(steps), upstream(graph))
        yield from _Performing(attempt, steps).part(part, scope)


@dataclass(frozen=True, slots=True)
class _Performing:
    attempt: Attempt
    steps: Mapping[str, Step]

    def part(self, part: Part, scope: Scope) -> Performance[None]:
        match part:
            case str():
                yield from performed_step(self.steps[part], scope, self.attempt)
            case Series(parts):
                for inner in parts:
                    yield from self.part(inner, scope)
            case Branches(parts):
                yield from _side_by_side(
                    [
                        (inner_scope := scope.inner(), self.part(inner, inner_scope))
                        for inner in parts
                    ],
                    scope,
                )
            case _:
                assert_never(part)


def performed_step(step: Step, scope: Scope, attempt: Attempt) -> Performance[None]:
    """Perform one step, and tell when it began and how it ended."""
    if isinstance(step, Concluded):
        # It is a part of no stage: only what is inside of it begins and ends.
        yield from _concluded(step, scope, attempt)
        return
    path = scope.path(step.name)
    yield Begun(path)
    try:
        yield from _step(step, scope, attempt)
        scope.ended.setdefault(step.name, {})
    except RunError as error:
        yield Broke(path, error.error, error.cause, isinstance(error, Trouble))
        raise
    except ExpressionError as error:
        yield Broke(path, wording.EXPRESSION_ERROR, str(error))
        raise RunError(wording.EXPRESSION_ERROR, str(error)) from error
    except ServiceError as error:
        # Whoever sends a request words its error, so this one is of keeping or recalling outputs.
        yield Broke(path, error.code, error.message, passing=True)
        raise Trouble(error.code, error.message) from error


def _finished(path: str, outputs: Outputs) -> Performance[Outputs]:
    """Tell that a step has ended well; returns the outputs that count for the whole run."""
    kept = cast("Outputs | None", (yield Finished(path, outputs, keep=True)))
    return outputs if kept is None else kept


def _step(step: Step, scope: Scope, attempt: Attempt) -> Performance[None]:  # noqa: C901 - one arm for each kind of step
    path = scope.path(step.name)
    match step:
        case Call():
            outputs = cast("Outputs | None", (yield Recall(path)))
            if outputs is None:
                outputs = yield from called(step, scope, attempt, path)
                # Also where there are none: what it changed may be gone when a run is gone on with.
                outputs = yield from _finished(path, outputs)
            scope.leave(step.name, outputs)
            return
        case Read():
            outputs = cast("Outputs | None", (yield Recall(path)))
            if outputs is None:
                outputs = yield from _read(step, scope)
                outputs = yield from _finished(path, outputs)
            scope.leave(step.name, outputs)
            return
        case Clock():
            outputs = cast("Outputs | None", (yield Recall(path)))
            if outputs is None:
                outputs = yield from _finished(path, {"at": cast(float, (yield Now()))})
            scope.leave(step.name, outputs)
            return
        case Choose():
            yield from _chosen(step, scope, attempt)
        case Require():
            if not _holds(step.condition, scope):
                raise RunError(step.error, str(evaluate(step.cause, scope)))
        case ForEach():
            yield from _for_each(step, scope, attempt)
            return
        case Parallel():
            yield from _side_by_side(
                [
                    (inner := scope.inner(), performed(branch, inner, attempt))
                    for branch in step.branches
                ],
                scope,
            )
        case Guarded():
            yield from _guarded(step, scope, attempt)
        case Concluded():
            yield from _concluded(step, scope, attempt)
            return
        case Wait():
            if (yield Recall(path)) is None:
                yield Rest(path, seconds(step.seconds, scope))
                yield Finished(path, keep=True)
            return
        case Fail():
            raise RunError(step.error, str(evaluate(step.cause, scope)))
        case _:
            assert_never(step)
    yield Finished(path)


def seconds(tree: Tree, scope: Scope) -> float:
    """Return how long a pause is, in seconds."""
    value = evaluate(tree, scope)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExpressionError(f"expected a number of seconds, got {value!r}")
    return value


def items(tree: Tree, scope: Scope) -> Sequence[Json]:
    """Return the list a loop runs over."""
    value = evaluate(tree, scope)
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ExpressionError(f"expected a list to run over, got {value!r}")
    return value


def _chosen(step: Choose, scope: Scope, attempt: Attempt) -> Performance[None]:
    holds, inner = _holds(step.condition, scope), scope.inner()
    yield from performed(step.then if holds else step.otherwise, inner, attempt)
    if step.collect:
        outputs = evaluate(step.collect if holds else step.absent, inner)
        scope.leave(step.name, cast("Outputs", outputs))


def chosen_outputs(condition: Tree, ways: tuple[Tree, Tree], scope: Scope) -> Outputs:
    """Return the outputs of a choice, one of whose ways was performed elsewhere."""
    collect, absent = ways
    try:
        return cast("Outputs", evaluate(collect if _holds(condition, scope) else absent, scope))
    except ExpressionError as error:
        raise RunError(wording.EXPRESSION_ERROR, str(error)) from error


def _holds(condition: Tree, scope: Scope) -> bool:
    value = evaluate(condition, scope)
    if not isinstance(value, bool):
        raise ExpressionError(f"expected a condition that is true or false, got {value!r}")
    return value


def _read(step: Read, scope: Scope) -> Performance[Outputs]:
    uri = str(evaluate(step.uri, scope))
    try:
        return (yield from reports.read(step, uri))
    except ServiceError as error:
        kind = RunError if error.lasting and not passes(error, Retry()) else Trouble
        problem = wording.filled(wording.UNREAD_REPORT, message=error.message)
        cause = wording.filled(wording.BROKEN_REPORT, step=step.name, uri=uri, problem=problem)
        raise kind(error_name("s3", error), cause) from error


def _for_each(step: ForEach, scope: Scope, attempt: Attempt) -> Performance[None]:
    path = scope.path(step.name)
    kept = cast("Outputs | None", (yield Recall(path)))
    if kept is None:
        elements = items(step.items, scope)
        performances = [
            performed_element(step, scope.at(step.name, index, element), attempt)
            for index, element in enumerate(elements)
        ]
        outcomes = yield Together(performances, step.max_concurrency)
        results = _checked(cast("Sequence[Any]", outcomes))
        kept = {"items": checked_results(results, step.name)}
        kept = yield from _finished(path, kept)
    scope.leave(step.name, kept)


def performed_element(loop: ForEach, scope: Scope, attempt: Attempt) -> Performance[Json]:
    """Perform a loop's body for one element; returns what is collected of it."""
    yield from performed(loop.body, scope, attempt)
    try:
        return evaluate(loop.collect, scope)
    except ExpressionError as error:
        raise RunError(wording.EXPRESSION_ERROR, str(error)) from error


def _side_by_side(
    branches: Sequence[tuple[Scope, Performance[None]]], scope: Scope
) -> Performance[None]:
    outcomes = yield Together([performance for _, performance in branches], len(branches))
    _checked(cast("Sequence[Any]", outcomes))
    for inner, _ in branches:
        scope.adopt(inner.results)


def _checked(outcomes: Sequence[Any]) -> list[Any]:
    """Return what all came to, or raise the first error, an abort before all others."""
    errors = [outcome for outcome in outcomes if isinstance(outcome, Exception)]
    for error in sorted(errors, key=lambda e: not isinstance(e, Aborted)):
        raise error
    return list(outcomes)


def acquired(acquire: Step, cleanup: Graph, scope: Scope, attempt: Attempt) -> Performance[None]:
    """Acquire what a clean-up releases; release it at once if an abort leaves in doubt what is."""
    told = cast(bool, (yield Acquiring(scope.path(acquire.name))))
    try:
        yield from performed_step(acquire, scope, attempt)
    except Aborted as error:
        if error.unsure or told:
            # It may exist, its response having been lost, or who had asked for it having died: the
            # same request again tells its name.
            yield from performed_step(acquire, scope, attempt)
            yield from performed(cleanup, scope.inner(), attempt)
        raise


def _guarded(step: Guarded, scope: Scope, attempt: Attempt) -> Performance[None]:
    """Acquire, use, release: the clean-up never hides a failure of the body."""
    yield from acquired(step.acquire, step.cleanup, scope, attempt)
    inner, ending = scope.inner(), cast(Ending, None)
    try:
        yield from performed(step.body, inner, attempt)
    except (RunError, Aborted) as error:
        ending = error
    cleaning = scope.inner()
    try:
        yield from performed(step.cleanup, cleaning, attempt)
    except (RunError, Aborted) as error:
        ending = ending or error
    if ending is not None:
        raise ending
    scope.adopt({**inner.results, **cleaning.results})


def _concluded(step: Concluded, scope: Scope, attempt: Attempt) -> Performance[None]:
    """Perform a body and what follows its end; a failure of the body is the one that counts."""
    inner, failure = scope.inner(), cast("RunError | None", None)
    try:
        yield from performed(step.body, inner, attempt)
    except RunError as error:
        failure = error
    else:
        scope.adopt(inner.results)
    ending = wording.ending(None if failure is None else (failure.error, failure.cause))
    values = kept_values(step.kept, scope.ended, scope)
    scope.leave(step.name, {**ending, "attempt": scope.attempt(), **values})
    try:
        yield from performed(step.conclusion, scope.inner(), attempt)
    except RunError as error:
        failure = failure or error
    if failure is not None:
        raise failure
