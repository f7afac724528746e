"""States, put together from the end: each says what comes next and is entered by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, cast

from orchestration.backends.jsonata import enclosed, quote
from orchestration.backends.stepfunctions.wording import message, refusal_name
from orchestration.execution import outputs, wording
from orchestration.expressions import Json

State = dict[str, Json]

# Not every way to such a state gives a reason.
_WORDS: Final = f"[$lookup($states.input, 'Reason'), {message('$states.input.Refused')}]"
CAUSE: Final = f"$join($append($states.input.Cause, {_WORDS}), {quote(wording.BEFORE_REASON)})"
"""The whole cause of the error in a state's input."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition of a Choice state, and where it leads."""

    condition: str
    following: str
    assign: Mapping[str, Json] = field(default_factory=dict)
    output: Json = None
    """The next state's input, where it is not the Choice state's own."""

    def written(self) -> State:
        """Return the rule as the language has it.

        A rule's assignments are its own; those of the state itself may count for every rule:
        https://docs.aws.amazon.com/step-functions/latest/dg/state-choice.html
        """
        rule: State = {"Condition": enclosed(self.condition)}
        if self.assign:
            rule["Assign"] = dict(self.assign)
        if self.output is not None:
            rule["Output"] = self.output
        return {**rule, "Next": self.following}


@dataclass(frozen=True, slots=True)
class States:
    """The states of one machine, branch or iteration, as they are written."""

    label: str = ""
    """The beginning of the names of states that belong to no step."""
    written: dict[str, State] = field(default_factory=dict)
    counters: dict[str, Json] = field(default_factory=dict)
    """Variables that count, and what they begin with."""

    @property
    def begun(self) -> dict[str, Json]:
        """The assignments before the first state, in the order in which a run comes by."""
        return dict(reversed(self.counters.items()))

    def add(self, name: str, state: State, following: str | None) -> str:
        """Write a state that goes on to another one, or ends; its name comes back."""
        self.written[name] = {**state, **going_on(following)}
        return name

    def last(self, name: str, state: State) -> str:
        """Write a state that says itself where it goes, as Choice, Fail and Succeed do."""
        self.written[name] = state
        return name

    def joined(self, chosen: State) -> State:
        """Return a Choice with the rules of the one that it leads to where none of its own holds.

        Nothing else leads to that one.
        """
        inner = self.written[cast("str", chosen["Default"])]
        if "Assign" in inner:
            return chosen
        del self.written[cast("str", chosen["Default"])]
        rules = (cast("list[Json]", each["Choices"]) for each in (chosen, inner))
        return {**inner, "Choices": list(chain.from_iterable(rules))}

    def overflow(self, text: str, source: str) -> Json:
        """Return the catcher of a result that is too large.

        It names the error, since ``States.ALL`` may not match it:
        https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html
        """
        output = {"Error": wording.DATA_LIMIT_EXCEEDED, "Cause": outputs.too_large(text, source)}
        caught = f"States.{wording.DATA_LIMIT_EXCEEDED}"
        return {"ErrorEquals": [caught], "Output": output, "Next": self.failed()}

    def failed(self) -> str:
        """Write the state that ends the run with the error in its input; they share it.

        ``Reason`` is a list of what a job said of its failure, ``Refused`` the cause that an error
        of AWS had. Names that begin with ``States.`` are the language's own, and one that timed
        out has no cause: https://states-language.net/#error-names
        """
        named = refusal_name("$states.input.Error", "$states.input.Refused")
        state = fail(enclosed(named), enclosed(CAUSE))
        return self.last(f"{self.label}-Failed" if self.label else "Failed", state)

    def machine(self, start: str) -> dict[str, Json]:
        """Return ``StartAt`` and ``States``, in the order in which a run comes by."""
        order = dict.fromkeys(self._reached(start))
        return {"StartAt": start, "States": {name: self.written[name] for name in order}}

    def _reached(self, start: str) -> Iterator[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                yield name
                waiting += reversed(following(self.written[name]))


def going_on(following: str | None) -> State:
    """Return how a state says what comes next; ``None``: its machine, or its branch, ends."""
    return {"End": True} if following is None else {"Next": following}


def following(state: Mapping[str, Json]) -> list[str]:
    """Return the states that a state may go on to, the ordinary way first."""
    ways = [state.get("Next"), state.get("Default")]
    for rules in ("Choices", "Catch"):
        ways += [rule["Next"] for rule in state.get(rules, [])]  # type: ignore[union-attr, index, call-overload]  # rules are lists of objects
    return [way for way in ways if isinstance(way, str)]


def fail(error: Json, cause: Json) -> State:
    """Return a state that ends the run."""
    return {"Type": "Fail", "Error": error, "Cause": cause}


def choice(*rules: Rule, default: str) -> State:
    """Return a state that goes where the first condition that holds says."""
    return {"Type": "Choice", "Choices": [rule.written() for rule in rules], "Default": default}
