"""Requirements that responses have the values which a stage gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from orchestration.expressions import Compare, Result, join
from orchestration.graph import Call, Output, Require, Step
from orchestration.refs import Expression

MISSING: Final = "MissingOutput"
_LACKS: Final = " returned no "


def without_failing(outputs: Mapping[str, Output], names: Iterable[str]) -> dict[str, Output]:
    """Return outputs of which some are null where the response lacks them."""
    optional = {name: replace(outputs[name], default=None) for name in names}
    return {**outputs, **optional}


def worded(
    outputs: Mapping[str, Output], places: Mapping[str, str], subject: str
) -> dict[str, Output]:
    """Return outputs whose lack fails the call itself, in the words of :func:`required`."""
    return {
        name: output
        if output.optional
        else replace(output, lacking=f"{subject}{_LACKS}{places.get(name, output.place)}")
        for name, output in outputs.items()
    }


def required(
    call: Call, places: Mapping[str, str], subject: str | Expression[object], after: Step
) -> tuple[Require, ...]:
    """Return what fails a run, one after the other, where a response lacks an output of a call.

    A state of Step Functions that took it itself would fail with an error of the language's own.
    """
    stage = call.name.rpartition(".")[0]
    steps: list[Require] = []
    for output, place in places.items():
        before = steps[-1] if steps else after
        steps.append(
            Require(
                name=f"{stage}.{output}_returned",
                condition=Compare("ne", Result(call.name, output), None),
                error=MISSING,
                cause=join(subject, f"{_LACKS}{place}"),
                after=(before.name,),
            )
        )
    return tuple(steps)
