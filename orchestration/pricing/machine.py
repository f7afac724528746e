"""The line of the state machine that runs a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orchestration.backends.stepfunctions.events import TRANSITIONS, counted
from orchestration.catalog import rate
from orchestration.expressions import Json
from orchestration.graph import Workflow, all_steps
from orchestration.graph.steps import ForEach
from orchestration.pricing.knowing import Known
from orchestration.pricing.lines import Line

WHOLE: Final = "(run)"
"""The stage of lines that belong to no stage."""
_THOUSAND: Final = 1000
_WHAT: Final = "Step Functions transitions"


def entered(transitions: int, region: str) -> Line:
    """Return the transitions of a run that has been."""
    count = transitions / _THOUSAND
    priced = rate("transitions", region)
    return Line(stage=WHOLE, what=_WHAT, rate=priced, expected=count, most=count, minor=True)


def line(definition: Mapping[str, Json], workflow: Workflow, known: Known) -> Line:
    """Return the transitions of a run: with each job polled once, and with every poll."""
    loops = [step for step in all_steps(workflow.graph) if isinstance(step, ForEach)]
    expected: dict[str, int] = {}
    for loop in loops:
        elements, count = known.elements(loop), known.count(loop).expected
        if elements is not None:
            expected[loop.name] = len(elements)
        elif count is not None:
            expected[loop.name] = round(count)
    unknown = [loop.name for loop in loops if loop.name not in expected]
    most = counted(definition, workflow, weights=TRANSITIONS)
    polls = counted(definition, workflow).most_polls
    usual = counted(definition, workflow, weights=TRANSITIONS, elements=expected)
    once = usual.once - sum(usual.pages.values())
    return Line(
        stage=WHOLE,
        what=_WHAT,
        rate=rate("transitions", known.region),
        expected=None if unknown else once / _THOUSAND,
        most=most.total(polls) / _THOUSAND,
        lacks=f"how many elements {', '.join(unknown)} will have" if unknown else "",
        notes=("expected with each job polled once, and each listing of one page",),
        minor=True,
    )
