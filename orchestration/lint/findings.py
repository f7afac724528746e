"""A finding, and how severe each rule is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Severity = Literal["error", "warning"]

RULES: Final[dict[str, tuple[Severity, str]]] = {
    # The file and its structure.
    "not-a-state-machine": ("error", "The file holds one state machine, as JSON or YAML."),
    "duplicate-key": ("error", "An object has each key once; readers keep only the last."),
    "missing-field": ("error", "A state machine and each state have the fields that they need."),
    "unknown-field": ("error", "States have the fields that the language defines for their type."),
    "unknown-type": ("error", "`Type` is one of the eight types of states."),
    "wrong-type": ("error", "A field has a value of the type that the language defines."),
    "wrong-value": ("error", "A field has a value within the bounds that the language defines."),
    "exclusive-fields": ("error", "Of fields that exclude each other, a state has one."),
    "wrong-language": ("error", "Fields and texts are those of the state's query language."),
    "limit": ("error", "Names, definitions and payloads stay within the service's quotas."),
    "duplicate-state": ("error", "A state's name is unique in the whole state machine."),
    # Flow.
    "missing-target": ("error", "`StartAt`, `Next` and `Default` name a state beside them."),
    "unreachable-state": ("warning", "Each state can be reached from `StartAt`."),
    "no-end": ("error", "A state machine has a state that ends it."),
    "endless-loop": ("warning", "Each state has a way to an end."),
    "no-default": ("warning", "A Choice has a `Default`: without a match the execution fails."),
    "unused-rule": ("warning", "A rule of a Choice asks what no rule before it has asked."),
    # Errors.
    "states-all": ("error", "`States.ALL` stands alone, in the last retrier or catcher."),
    "unknown-error": ("warning", "Errors that begin with `States.` are those of the language."),
    "unused-handler": ("warning", "A retrier or catcher is not shadowed by one before it."),
    "retried-name": ("warning", "A `.sync` job that is retried has another name at each try."),
    "uncaught-cost": ("warning", "A failure does not leave running what costs by the hour."),
    # Integrations.
    "unknown-integration": ("error", "`Resource` is an integration that exists."),
    "wrong-pattern": ("error", "`.sync` and `.waitForTaskToken` stand where they are supported."),
    "unused-token": ("error", "A task that waits for a token sends it to somebody."),
    "unknown-request-field": ("error", "A request has the fields of the API, in its casing."),
    "missing-request-field": ("error", "A request has the fields that the API requires."),
    "given-twice": ("warning", "A template gives a field a value or a path, not both."),
    "wrong-request-value": ("error", "A value in a request is one that the API takes."),
    "doubtful-request-value": ("warning", "A value has the type, bounds and pattern of the API."),
    "absent-token": ("warning", "`Task.Token` is read by a task that waits for it."),
    "heartbeat": ("error", "`HeartbeatSeconds` is less than `TimeoutSeconds`."),
    "unused-heartbeat": ("warning", "Heartbeats are sent to activities and by holders of a token."),
    # Expressions and paths.
    "jsonata-syntax": ("error", "Text between `{%` and `%}` is an expression of JSONata."),
    "unknown-function": ("error", "A function that an expression calls exists."),
    "wrong-operand": ("error", "Operators and functions get values of types that they take."),
    "undefined-variable": ("error", "A variable is assigned on a way to the state that reads it."),
    "maybe-undefined": ("warning", "A variable is assigned on every way to the state."),
    "shadowed-variable": ("error", "A Map or Parallel does not assign a variable of its scope."),
    "unavailable-data": ("error", "`$states` and the context object have what is read there."),
    "undefined-path": ("error", "What is read of a result or an error can be there."),
    "unknown-input": ("warning", "A field of a state's input is one that a state before gives."),
    "no-context": ("error", "Outside of a path, `$` and bare names have no value."),
    "literal-path": ("warning", "A path or expression that is meant to be evaluated is."),
    "path-syntax": ("error", "Paths are those that the service reads."),
    "unknown-intrinsic": ("error", "An intrinsic function exists and has its arguments."),
}
"""The severity of each rule, and what holds where it is kept.

An error is what the service refuses, or what fails each execution that comes there.
"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong with a definition."""

    rule: str
    path: str
    """A JSON pointer into the user's file: ``/States/Train/Next``."""
    message: str
    """The problem, and the remedy."""

    @property
    def severity(self) -> Severity:
        """The severity of the rule."""
        return RULES[self.rule][0]

    def __str__(self) -> str:
        return f"{self.path or '/'}: {self.message} [{self.rule}]"
