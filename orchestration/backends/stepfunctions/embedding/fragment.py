"""A whole definition inside one Parallel state, which keeps its variables to itself.

State names must be unique in a whole machine, and a variable inside a Parallel state must not have
the name of one around it, so all begin with a prefix.
https://docs.aws.amazon.com/step-functions/latest/dg/workflow-variables.html
"""

from __future__ import annotations

import re
from typing import Any, Final

from orchestration.backends.jsonata import quote
from orchestration.backends.origins import with_origin
from orchestration.backends.stepfunctions.embedding.renaming import Names, renamed, variables
from orchestration.backends.stepfunctions.names import MAX_NAME
from orchestration.backends.stepfunctions.rendering import render
from orchestration.errors import PipelineError, Problem, UnsupportedError
from orchestration.expressions import Json
from orchestration.graph import Workflow

_PREFIX: Final = r"[A-Za-z][A-Za-z0-9_-]{0,29}"
_LANGUAGE: Final = {"QueryLanguage": "JSONata"}


def fragment(workflow: Workflow, prefix: str) -> dict[str, Json]:
    """Return a machine of one state, called ``prefix``, to be put into a larger one.

    The state takes the pipeline's parameters as input and gives its outputs; it fails with the
    errors of the pipeline. Raises :class:`~orchestration.errors.UnsupportedError` as
    :func:`~orchestration.backends.stepfunctions.render` does, and where a name gets too long.
    """
    if re.fullmatch(_PREFIX, prefix) is None:
        raise PipelineError(
            [
                Problem(
                    "prefix",
                    "expected up to 30 letters, digits, hyphens and underscores, a letter first, "
                    f"got {prefix!r}",
                )
            ]
        )
    definition: Any = render(workflow, place=quote(f"/{prefix}"))
    names = Names(
        state=f"{prefix}-",
        variable=re.sub(r"\W", "_", prefix) + "__",
        variables=variables(definition),
    )
    inner = renamed({key: definition[key] for key in ("StartAt", "States")}, names)
    _check(names.made(inner))
    around: dict[str, Json] = {
        "Type": "Parallel",
        **_LANGUAGE,
        "Comment": with_origin(str(definition["Comment"]), workflow.origin),
        "Branches": [_in_jsonata(inner)],
        "Output": "{% $states.result[0] %}",
        "End": True,
    }
    return {"StartAt": prefix, "States": {prefix: around}}


def _check(names: list[str]) -> None:
    long = [name for name in names if len(name) > MAX_NAME]
    if long:
        raise UnsupportedError(
            [
                Problem(
                    name,
                    f"has {len(name)} characters with the prefix, and the most is {MAX_NAME}; "
                    "choose a shorter prefix",
                )
                for name in long
            ]
        )


def _in_jsonata(machine: Any) -> Any:
    """Say the language at each state: the machine around may have another one."""
    return {
        **machine,
        "States": {name: _state(state) for name, state in machine["States"].items()},
    }


def _state(state: Any) -> Any:
    inner = dict(state)
    if "Branches" in inner:
        inner["Branches"] = [_in_jsonata(branch) for branch in inner["Branches"]]
    if "ItemProcessor" in inner:
        inner["ItemProcessor"] = _in_jsonata(inner["ItemProcessor"])
    return {"Type": inner.pop("Type"), **_LANGUAGE, **inner}
