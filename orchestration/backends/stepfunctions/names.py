"""Names of states and variables, and where the results of steps are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from orchestration.backends import jsonata
from orchestration.backends.jsonata import Code, Kind, Leaf, Part
from orchestration.errors import GraphError, Problem
from orchestration.expressions import Item, Json, Parameter, Result, Run, RunAttempt, walk
from orchestration.graph import Integration

MAX_NAME: Final = 80
"""Characters of a state's or a variable's name."""
MOST_POLLS: Final = 2000
"""Polls of one job, where the events of the whole allow so many: each round writes nine."""

TRY: Final = "No"
"""The number that the name of a job's present try ends in, ``-2`` say; read like an output."""

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
RESERVED: Final = frozenset(
    {
        *_FUNCTIONS,
        "states",
        "run",
        "attempt",
        "parameters",
        "declared",
        "problems",
        "item",
        *"abkoptv",
    }
)


def state(step: str, helper: str = "") -> str:
    """Return a state's name: ``train-job``, ``train-job-Poll``; only helpers are capitalised."""
    name = step.replace(".", "-")
    return f"{name}-{helper}" if helper else name


def alternative(step: str, number: int, helper: str = "") -> str:
    """Return the name of a state of a call's n-th alternative, 0 being the call itself."""
    return state(step, f"Fallback{number}{helper}" if number else helper)


def variable(step: str, helper: str = "") -> str:
    """Return a variable's name without its ``$``: ``train__job``, ``train__job__Polls``."""
    name = step.replace(".", "__")
    if helper:
        return f"{name}__{helper}"
    return f"{name}_" if name in RESERVED else name


_ITEM: Final = Code("$item", label="item")


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a whole workflow."""

    kinds: Mapping[tuple[str, str], Kind]
    """Of each output of each step."""
    parameters: Mapping[str, Kind]
    readers: Mapping[str, frozenset[str]]
    """Of each step that is read: the names of those that read it, ``""`` being the workflow's
    outputs."""
    rows: Mapping[tuple[str, str], Mapping[str, Kind]]
    """Outputs that are lists of objects, and the fields that each object is sure to have."""
    most_polls: int = MOST_POLLS
    """Polls of one job, after which it is out of time."""
    integrations: Mapping[str, Integration] = field(default_factory=dict)
    """The integrations that the pipeline asks for, by stage; for all under an empty name."""
    kept: frozenset[str] = frozenset()
    """The steps whose results outlive the run's end."""
    marks: frozenset[str] = frozenset()
    """The steps of which it is kept that they have ended well."""


@dataclass(frozen=True, slots=True)
class Value:
    """A part of an expression that has a variable of its own."""

    parts: tuple[Part, ...]
    """All have the same JSONata; they differ in what is asked of them."""
    variable: str


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
    item: Code = _ITEM
    """The element of the enclosing loop."""
    loop: str = ""
    """The name of the enclosing loop."""
    values: Mapping[Part, Code] = field(default_factory=dict)
    """Parts of expressions that are assigned to variables, and what is known of them."""
    entering: Mapping[str, Sequence[Value]] = field(default_factory=dict)
    """The values to assign together with the outputs of a step."""
    raw: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """The JSONata of outputs that are being assigned by the very state that is written."""
    taken: set[str] = field(default_factory=set)
    """The names of all variables that values have anywhere in the definition."""

    def extended(self, places: Mapping[str, str]) -> Scope:
        """Return a scope that sees more."""
        return replace(self, places={**self.places, **places})

    def without_values(self) -> Scope:
        """Return a scope in which no values are assigned together with outputs."""
        return replace(self, entering={})

    def entered_by(self, step: str, values: Sequence[Value]) -> Scope:
        """Return a scope in which a step assigns values together with its outputs."""
        return replace(self, entering={step: values})

    def looping(self, loop: str, fields: Mapping[str, Kind] | None) -> Scope:
        """Return a scope inside a loop; ``fields``: those of each element, if all are objects."""
        # A variable must not have the name of one around it.
        name = variable(loop, "Item") if self.loop else "item"
        item = Code(f"${name}", "any" if fields is None else "object", "item", fields=fields)
        outer = {part: code for part, code in self.values.items() if not _of_item(part)}
        return replace(self, item=item, loop=loop, values=outer)

    @property
    def item_variable(self) -> str:
        """The variable of the element that the loop is at, without its ``$``."""
        return self.item.text.removeprefix("$")

    def reading_item(self) -> Scope:
        """Return the scope of the state that assigns the element of the loop."""
        return replace(self, item=self.item._replace(text="$states.input"))

    def knowing(self, values: Sequence[Value]) -> Scope:
        """Return a scope in which values have been assigned."""
        codes = {
            part: jsonata.written(part, self)._replace(
                text=f"${value.variable}", atomic=True, present=True
            )
            for value in values
            for part in value.parts
        }
        return replace(self, values={**self.values, **codes})

    def assigned(self, values: Sequence[Value]) -> dict[str, Json]:
        """Return the assignments of values that can be known here."""
        return {
            value.variable: jsonata.enclosed(jsonata.written(value.parts[0], self).text)
            for value in values
        }

    def assigning(self, raw: Mapping[tuple[str, str], str], step: str) -> dict[str, Json]:
        """Return the values to assign together with the outputs of a step."""
        return replace(self, raw={**self.raw, **raw}).assigned(self.entering.get(step, ()))

    def reference(self, leaf: Leaf) -> Code:
        """Return the JSONata that gives a leaf's value."""
        match leaf:
            case Result(step, output) if output == TRY:
                return Code(f"${variable(step, TRY)}", "string", "the try")
            case Result(step, output):
                return self._output(step, output)
            case Parameter(name):
                kind = self.facts.parameters.get(name, "any")
                return Code(jsonata.field("$parameters", name), kind, f"parameter {name}")
            case Run():
                return Code("$run", "string", "the run")
            case RunAttempt():
                text = "$run & ($attempt > 1 ? '-' & $attempt : '')"
                return Code(text, "string", "the attempt", atomic=False)
            case Item():
                return self.item

    def known(self, part: Part) -> Code | None:
        """Return a part's variable, if it has one."""
        try:
            return self.values.get(part)
        except TypeError:  # a list or an object inside of it
            return None

    def value(self, part: Part, write: Callable[[], Code]) -> Code:
        """Return a part's variable, or what ``write`` returns."""
        return self.known(part) or write()

    def _output(self, step: str, output: str) -> Code:
        text = self.raw.get((step, output))
        if text is None:
            if step not in self.places:
                raise GraphError([Problem(step, "it is read where its results can't be seen")])
            text = jsonata.field(self.places[step], output)
        kind = self.facts.kinds.get((step, output), "any")
        rows = self.facts.rows.get((step, output))
        return Code(text, kind, f"{step}.{output}", fields=rows)


def _of_item(part: Part) -> bool:
    """Return whether a part is of the element of the loop that it stands in."""
    return any(isinstance(node, Item) for node in walk(part.node))
