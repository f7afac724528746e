"""States, put together from the end: each says what comes next and is entered by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from orchestration.backends.jsonata import enclosed
from orchestration.expressions import Json

State = dict[str, Json]

END: None = None
"""What comes next after the last state of a machine, a branch or an iteration."""


@dataclass(frozen=True, slots=True)
class States:
    """The states of one machine, branch or iteration, as they are written."""

    written: dict[str, State] = field(default_factory=dict)

    def add(self, name: str, state: State, following: str | None) -> str:
        """Write a state that goes on to another one, or ends; its name comes back."""
        self.written[name] = {**state, **going_on(following)}
        return name

    def last(self, name: str, state: State) -> str:
        """Write a state that says itself where it goes, as Choice, Fail and Succeed do."""
        self.written[name] = state
        return name

    def machine(self, start: str) -> dict[str, Json]:
        """``StartAt`` and ``States``, in the order in which a run comes by."""
        order = dict.fromkeys(self._reached(start))
        return {"StartAt": start, "States": {name: self.written[name] for name in order}}

    def _reached(self, start: str) -> Iterator[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            name = waiting.pop(0)
            if name not in seen:
                seen.add(name)
                yield name
                waiting = [*following(self.written[name]), *waiting]


def going_on(following: str | None) -> State:
    """How a state says what comes next."""
    return {"End": True} if following is None else {"Next": following}


def following(state: Mapping[str, Json]) -> list[str]:
    """The states that a state may go on to, the ordinary way first."""
    ways = [state.get("Next"), state.get("Default")]
    for rules in ("Choices", "Catch"):
        ways += [rule["Next"] for rule in state.get(rules, [])]  # type: ignore[union-attr, index, call-overload]  # rules are lists of objects
    return [way for way in ways if isinstance(way, str)]


def fail(error: Json, cause: Json) -> State:
    """A state that ends the run."""
    return {"Type": "Fail", "Error": error, "Cause": cause}


def failed_as(root: str) -> State:
    """A state that ends the run with an error that was given back as data."""
    return fail(enclosed(f"{root}.error"), enclosed(f"{root}.cause"))


def own_name(error: str) -> str:
    """JSONata of an error's name for a Fail state: names that begin so are the language's own.

    https://states-language.net/#error-names
    """
    return f"$replace({error}, /^States\\./, '')"


def choice(*rules: tuple[str, str], default: str) -> State:
    """A state that goes where the first condition that holds says."""
    return {
        "Type": "Choice",
        "Choices": [{"Condition": enclosed(when), "Next": then} for when, then in rules],
        "Default": default,
    }


def reraised(states: States, name: str) -> str:
    """Write a state that fails with the error in its input; one that timed out has no cause."""
    error, cause = own_name("$states.input.Error"), "'' & $states.input.Cause"
    return states.last(name, fail(enclosed(error), enclosed(cause)))
