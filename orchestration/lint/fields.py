"""The fields of states: which there are, of what type, within what bounds.

https://states-language.net/spec.html and
https://docs.aws.amazon.com/step-functions/latest/dg/concepts-amazon-states-language.html
(read November 2026).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.errors import near
from orchestration.lint import values
from orchestration.lint.findings import Finding
from orchestration.lint.machines import Machine, State

_LONGEST_NAME: Final = 80
_LONGEST_LABEL: Final = 40

_EVERY = frozenset({"Type", "Comment", "QueryLanguage"})
_GOES_ON = frozenset({"Next", "End"})
_HANDLES = frozenset({"Retry", "Catch"})
_TYPES: Final[dict[str, frozenset[str]]] = {
    "Task": _GOES_ON | _HANDLES | {"Resource", "TimeoutSeconds", "HeartbeatSeconds", "Credentials"},
    "Pass": _GOES_ON,
    "Choice": frozenset({"Choices", "Default"}),
    "Wait": _GOES_ON | {"Seconds", "Timestamp"},
    "Succeed": frozenset(),
    "Fail": frozenset({"Error", "Cause"}),
    "Parallel": _GOES_ON | _HANDLES | {"Branches"},
    "Map": _GOES_ON
    | _HANDLES
    | {"ItemProcessor", "Iterator", "ItemReader", "ItemBatcher", "ItemSelector", "ResultWriter"}
    | {"MaxConcurrency", "ToleratedFailureCount", "ToleratedFailurePercentage", "Label"},
}
_PATHS = frozenset({"InputPath", "OutputPath"})
_RESULTS = frozenset({"Parameters", "ResultSelector", "ResultPath", "Assign"})
_JSONPATH: Final[dict[str, frozenset[str]]] = {
    "Task": _PATHS | _RESULTS | {"TimeoutSecondsPath", "HeartbeatSecondsPath"},
    "Pass": _PATHS | {"Parameters", "Result", "ResultPath", "Assign"},
    "Choice": _PATHS | {"Assign"},
    "Wait": _PATHS | {"SecondsPath", "TimestampPath", "Assign"},
    "Succeed": _PATHS,
    "Fail": frozenset({"ErrorPath", "CausePath"}),
    "Parallel": _PATHS | _RESULTS,
    "Map": _PATHS
    | _RESULTS
    | {"ItemsPath", "MaxConcurrencyPath"}
    | {"ToleratedFailureCountPath", "ToleratedFailurePercentagePath"},
}
_JSONATA: Final[dict[str, frozenset[str]]] = {
    "Task": frozenset({"Arguments", "Output", "Assign"}),
    "Pass": frozenset({"Output", "Assign"}),
    "Choice": frozenset({"Output", "Assign"}),
    "Wait": frozenset({"Output", "Assign"}),
    "Succeed": frozenset({"Output"}),
    "Fail": frozenset(),
    "Parallel": frozenset({"Arguments", "Output", "Assign"}),
    "Map": frozenset({"Items", "Output", "Assign"}),
}
_REQUIRED: Final = {
    "Task": ("Resource",),
    "Choice": ("Choices",),
    "Parallel": ("Branches",),
}
_MACHINE = frozenset({"Comment", "StartAt", "States"})
_EXCLUSIVE = (
    ("Next", "End"),
    ("Seconds", "Timestamp", "SecondsPath", "TimestampPath"),
    ("ItemProcessor", "Iterator"),
    ("TimeoutSeconds", "TimeoutSecondsPath"),
    ("HeartbeatSeconds", "HeartbeatSecondsPath"),
    ("Error", "ErrorPath"),
    ("Cause", "CausePath"),
    ("MaxConcurrency", "MaxConcurrencyPath"),
    ("ToleratedFailureCount", "ToleratedFailureCountPath"),
    ("ToleratedFailurePercentage", "ToleratedFailurePercentagePath"),
    ("ItemSelector", "Parameters"),
)


def of_machine(machine: Machine) -> Iterator[Finding]:
    """Yield what is wrong with a state machine's own fields."""
    fields, path = machine.fields, machine.path
    for name in ("StartAt", "States"):
        if name not in fields:
            yield Finding("missing-field", path, f"{name} is required")
    known = _MACHINE | ({"ProcessorConfig"} if machine.outer is not None else set())
    if machine.outer is None:
        known |= {"TimeoutSeconds", "Version", "QueryLanguage"}
    for name in fields:
        if name not in known:
            yield Finding("unknown-field", f"{path}/{name}", f"is unknown{near(str(name), known)}")
    if fields.get("Version", "1.0") != "1.0":
        yield Finding("wrong-value", f"{path}/Version", 'the one version is "1.0"')
    if fields.get("QueryLanguage") not in (None, "JSONPath", "JSONata"):
        text = "expected JSONPath or JSONata"
        yield Finding("wrong-value", f"{path}/QueryLanguage", text)
    yield from values.check(fields, path, "JSONPath", ("StartAt", "Comment", "TimeoutSeconds"))
    yield from _states(fields, path)


def _states(fields: Mapping[str, Any], path: str) -> Iterator[Finding]:
    states = fields.get("States")
    if "States" in fields and (not isinstance(states, Mapping) or not states):
        yield Finding("wrong-type", f"{path}/States", "expected an object with at least one state")
    elif isinstance(states, Mapping):
        for name, value in states.items():
            if not isinstance(value, Mapping):
                yield Finding("wrong-type", f"{path}/States/{name}", "expected an object")


def of_state(state: State) -> Iterator[Finding]:
    """Yield what is wrong with the fields of a state."""
    if len(state.name) > _LONGEST_NAME:
        most = f"the name has {len(state.name)} characters; the most is {_LONGEST_NAME}"
        yield Finding("limit", state.path, f"{most}; shorten it")
    if state.type not in _TYPES:
        rule = "unknown-type" if "Type" in state.fields else "missing-field"
        hint = near(state.type, _TYPES)
        text = f"{state.fields.get('Type')!r} is unknown{hint}"
        path = f"{state.path}/Type" if rule == "unknown-type" else state.path
        yield Finding(rule, path, text if rule == "unknown-type" else "Type is required")
        return
    yield from _known(state)
    yield from _required(state)
    yield from _credentials(state)
    yield from values.check(state.fields, state.path, state.language, tuple(state.fields))
    for group in _EXCLUSIVE:
        both = [name for name in group if name in state.fields]
        if len(both) > 1 and not (state.language == "JSONata" and "Parameters" in both):
            text = f"{' and '.join(both)} exclude each other; remove one"
            yield Finding("exclusive-fields", f"{state.path}/{both[1]}", text)
    label = state.fields.get("Label")
    if isinstance(label, str) and len(label) > _LONGEST_LABEL:
        most = f"has {len(label)} characters; the most is {_LONGEST_LABEL}"
        yield Finding("limit", f"{state.path}/Label", most)


def _known(state: State) -> Iterator[Finding]:
    both = _EVERY | _TYPES[state.type]
    ours, theirs, other = _JSONPATH, _JSONATA, "JSONata"
    if state.language == "JSONata":
        ours, theirs, other = _JSONATA, _JSONPATH, "JSONPath"
    known = both | ours[state.type]
    for name in state.fields:
        if name in known:
            continue
        path = f"{state.path}/{name}"
        if name in theirs[state.type]:
            instead = _INSTEAD.get(str(name))
            remedy = f"; write {instead}" if instead else ""
            text = f"is a field of {other}, and the state is in {state.language}{remedy}"
            yield Finding("wrong-language", path, text)
        else:
            hint = near(str(name), known)
            yield Finding("unknown-field", path, f"a {state.type} state has no such field{hint}")
    language = state.fields.get("QueryLanguage")
    if language not in (None, "JSONPath", "JSONata"):
        text = "expected JSONPath or JSONata"
        yield Finding("wrong-value", f"{state.path}/QueryLanguage", text)
    elif language == "JSONPath" and state.machine.language == "JSONata":
        text = "a state machine in JSONata has no states in JSONPath; remove its QueryLanguage, or"
        where = f"{state.path}/QueryLanguage"
        yield Finding("wrong-language", where, f"{text} name JSONata in its states alone")


_INSTEAD: Final = {
    "Parameters": "Arguments",
    "ItemsPath": "Items",
    "OutputPath": "Output",
    "ResultPath": "Output or Assign",
    "ResultSelector": "Output or Assign",
    "Result": "Output",
    "Arguments": "Parameters",
    "Items": "ItemsPath",
    "Output": "ResultSelector, ResultPath or OutputPath",
    "InputPath": "expressions that read $states.input",
    "TimeoutSecondsPath": "an expression in TimeoutSeconds",
    "HeartbeatSecondsPath": "an expression in HeartbeatSeconds",
    "SecondsPath": "an expression in Seconds",
    "TimestampPath": "an expression in Timestamp",
    "MaxConcurrencyPath": "an expression in MaxConcurrency",
    "ErrorPath": "an expression in Error",
    "CausePath": "an expression in Cause",
}


def _credentials(state: State) -> Iterator[Finding]:
    given, path = state.fields.get("Credentials"), f"{state.path}/Credentials"
    if not isinstance(given, Mapping):
        return
    names = {str(name).removesuffix(".$") for name in given}
    if "RoleArn" not in names:
        yield Finding("missing-field", path, f"RoleArn is required{near('RoleArn', names)}")


def _required(state: State) -> Iterator[Finding]:
    fields, path = state.fields, state.path
    for name in _REQUIRED.get(state.type, ()):
        if name not in fields:
            yield Finding("missing-field", path, f"{name} is required in a {state.type} state")
    if state.type == "Map" and not ({"ItemProcessor", "Iterator"} & set(fields)):
        yield Finding("missing-field", path, "ItemProcessor is required in a Map state")
    times = {"Seconds", "Timestamp", "SecondsPath", "TimestampPath"}
    if state.type == "Wait" and not times & set(fields):
        yield Finding("missing-field", path, "a Wait state needs Seconds or Timestamp")
    if _TYPES[state.type] >= _GOES_ON and not _GOES_ON & set(fields):
        yield Finding("missing-field", path, "the state needs Next, or End with true")
