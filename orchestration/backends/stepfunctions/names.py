"""Names of states and variables, and where the results of steps are found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from orchestration.backends.jsonata import Kind, field
from orchestration.errors import GraphError, Problem
from orchestration.expressions import Item, Parameter, Result, Run

MAX_NAME = 80
"""Characters of a state's or a variable's name."""

# A variable of one of these names would hide a function, or one of the variables that expressions
# use.
_FUNCTIONS = [
    "abs",
    "append",
    "assert",
    "average",
    "base64decode",
    "base64encode",
    "boolean",
    "ceil",
    "clone",
    "contains",
    "count",
    "decodeUrl",
    "decodeUrlComponent",
    "distinct",
    "each",
    "encodeUrl",
    "encodeUrlComponent",
    "error",
    "eval",
    "exists",
    "filter",
    "floor",
    "formatBase",
    "formatInteger",
    "formatNumber",
    "fromMillis",
    "hash",
    "join",
    "keys",
    "length",
    "lookup",
    "lowercase",
    "map",
    "match",
    "max",
    "merge",
    "millis",
    "min",
    "not",
    "now",
    "number",
    "pad",
    "parse",
    "parseInteger",
    "partition",
    "power",
    "random",
    "range",
    "reduce",
    "replace",
    "reverse",
    "round",
    "shuffle",
    "sift",
    "single",
    "sort",
    "split",
    "spread",
    "sqrt",
    "string",
    "substring",
    "substringAfter",
    "substringBefore",
    "sum",
    "toMillis",
    "trim",
    "type",
    "uppercase",
    "uuid",
    "zip",
]
_RESERVED = frozenset({*_FUNCTIONS, "states", "run", "parameters", "problems", "item", *"abkoptv"})


def state(step: str, helper: str = "") -> str:
    """A state's name: ``train-job``, ``train-job-Poll``; only helpers are capitalised."""
    name = step.replace(".", "-")
    return f"{name}-{helper}" if helper else name


def alternative(step: str, number: int, helper: str = "") -> str:
    """The name of a state of a call's n-th alternative, 0 being the call itself."""
    return state(step, f"Fallback{number}{helper}" if number else helper)


def variable(step: str, helper: str = "") -> str:
    """A variable's name without its ``$``: ``train__job``, ``train__job__Polls``."""
    name = step.replace(".", "__")
    if helper:
        return f"{name}__{helper}"
    return f"{name}_" if name in _RESERVED else name


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of a whole workflow."""

    kinds: Mapping[tuple[str, str], Kind]
    """Of each output of each step."""
    parameters: Mapping[str, Kind]
    readers: Mapping[str, frozenset[str]]
    """Of each step that is read: the names of those that read it, ``""`` being the workflow's
    outputs."""
    rows: frozenset[tuple[str, str]] = frozenset()
    """Outputs that are lists of objects."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables that a state can read.

    A variable assigned inside a Parallel or Map state ends with it, and must not have the name of
    one assigned around it, so results leave it inside of one object, under another name:
    https://docs.aws.amazon.com/step-functions/latest/dg/workflow-variables.html
    """

    facts: Facts
    places: Mapping[str, str]
    """The JSONata of each step's outputs."""
    item: Kind = "any"
    """What the elements of the enclosing loop are sure to be."""

    def extended(self, places: Mapping[str, str]) -> Scope:
        """A scope that sees more."""
        return replace(self, places={**self.places, **places})

    def reference(self, leaf: Result | Parameter | Run | Item) -> str:
        """The JSONata that gives a leaf's value."""
        match leaf:
            case Result(step, output):
                if step not in self.places:
                    raise GraphError([Problem(step, "it is read where its results can't be seen")])
                return field(self.places[step], output)
            case Parameter(name):
                return field("$parameters", name)
            case Run():
                return "$run"
            case Item():
                return "$item"

    def kind(self, leaf: Result | Parameter | Run | Item) -> Kind:
        """What kind a leaf's value is sure to have."""
        match leaf:
            case Result(step, output):
                return self.facts.kinds.get((step, output), "any")
            case Parameter(name):
                return self.facts.parameters.get(name, "any")
            case Run():
                return "string"
            case Item():
                return self.item
