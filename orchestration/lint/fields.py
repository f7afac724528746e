"""The fields of states: which there are, of what type, within what bounds.

https://states-language.net/spec.html and
https://docs.aws.amazon.com/step-functions/latest/dg/concepts-amazon-states-language.html
(read November 2026).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.errors import near
from orchestration.lint.findings import Finding
from orchestration.lint.machines import Machine, State

MAX_SECONDS: Final = 99_999_999
_LONGEST_NAME: Final = 80
_LONGEST_LABEL: Final = 40
_MAX_DELAY: Final = 31_622_400
_PLACEHOLDER = re.compile(
    r"\$\{[^}]*\}|\{\{.*?\}\}|\{[A-Z][A-Z_-]+\}|<[A-Za-z_ -]+>|^__\w+__$|%\w+%", re.DOTALL
)
_TIME = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})")

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
_TEXTS = ("Comment", "Next", "Default", "Resource", "Error", "Cause", "Label", "StartAt")
_PATH_TEXTS = (*_PATHS, "ResultPath", "ItemsPath")
_NUMBERS: Final[dict[str, tuple[int, int, bool]]] = {
    "TimeoutSeconds": (1, MAX_SECONDS, True),
    "HeartbeatSeconds": (1, MAX_SECONDS, True),
    "Seconds": (0, MAX_SECONDS, True),
    "MaxConcurrency": (0, MAX_SECONDS, True),
    "ToleratedFailureCount": (0, 10_000_000, True),
    "ToleratedFailurePercentage": (0, 100, False),
    "IntervalSeconds": (1, MAX_SECONDS, True),
    "MaxAttempts": (0, MAX_SECONDS, True),
    "MaxDelaySeconds": (1, _MAX_DELAY, True),
}
_LISTS = ("Retry", "Catch", "Choices", "Branches")
_EXCLUSIVE = (
    ("Next", "End"),
    ("Seconds", "Timestamp", "SecondsPath", "TimestampPath"),
    ("ItemProcessor", "Iterator"),
    ("TimeoutSeconds", "TimeoutSecondsPath"),
    ("HeartbeatSeconds", "HeartbeatSecondsPath"),
    ("Error", "ErrorPath"),
    ("Cause", "CausePath"),
    ("MaxConcurrency", "MaxConcurrencyPath"),
    ("ItemSelector", "Parameters"),
)


def is_placeholder(value: object) -> bool:
    """Return whether a text is completed when the definition is deployed."""
    return isinstance(value, str) and _PLACEHOLDER.search(value) is not None


def is_expression(value: object) -> bool:
    """Return whether a value is an expression of JSONata."""
    return isinstance(value, str) and value.startswith("{%") and value.endswith("%}")


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
    states = fields.get("States")
    if "States" in fields and (not isinstance(states, Mapping) or not states):
        yield Finding("wrong-type", f"{path}/States", "expected an object with at least one state")
    elif isinstance(states, Mapping):
        for name, value in states.items():
            if not isinstance(value, Mapping):
                yield Finding("wrong-type", f"{path}/States/{name}", "expected an object")
    if fields.get("Version", "1.0") != "1.0":
        yield Finding("wrong-value", f"{path}/Version", 'the one version is "1.0"')
    yield from _values(fields, path, "JSONPath", ("StartAt", "Comment", "TimeoutSeconds"))


def of_state(state: State) -> Iterator[Finding]:
    """Yield what is wrong with the fields of a state."""
    if len(state.name) > _LONGEST_NAME:
        most = f"the name has {len(state.name)} characters; the most is {_LONGEST_NAME}"
        yield Finding("limit", state.path, f"{most}; shorten it")
    if state.type not in _TYPES:
        rule = "unknown-type" if "Type" in state.fields else "missing-field"
        hint = near(state.type, _TYPES)
        text = f"{state.fields.get('Type')!r} is no type of state{hint}"
        path = f"{state.path}/Type" if rule == "unknown-type" else state.path
        yield Finding(rule, path, text if rule == "unknown-type" else "Type is required")
        return
    yield from _known(state)
    yield from _required(state)
    yield from _values(state.fields, state.path, state.language, tuple(state.fields))
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


def _values(
    fields: Mapping[str, Any], path: str, language: str, names: tuple[Any, ...]
) -> Iterator[Finding]:
    for name in names:
        if name not in fields:
            continue
        value, where = fields[name], f"{path}/{name}"
        if is_placeholder(value) or (language == "JSONata" and is_expression(value)):
            continue
        if name in _NUMBERS:
            yield from number(value, where, *_NUMBERS[name])
        elif name in _TEXTS and not isinstance(value, str):
            yield Finding("wrong-type", where, f"expected text, not {value!r}")
        elif name in _PATH_TEXTS and not isinstance(value, str | None):
            yield Finding("wrong-type", where, f"expected a path or null, not {value!r}")
        elif name == "End" and value is not True:
            yield Finding("wrong-value", where, "expected true; a state that goes on has Next")
        elif name in _LISTS:
            yield from _list(name, value, where)
        elif name == "Timestamp" and not (isinstance(value, str) and _TIME.fullmatch(value)):
            text = "expected a time such as 2026-11-01T18:00:00Z"
            yield Finding("wrong-value", where, f"{text}, not {value!r}")
        elif name in ("Assign", "ItemReader", "ResultWriter", "ItemBatcher", "Credentials"):
            if not isinstance(value, Mapping):
                yield Finding("wrong-type", where, "expected an object")
        elif name == "ResultSelector" and not isinstance(value, Mapping):
            yield Finding("wrong-type", where, "expected an object")


def _list(name: str, value: Any, where: str) -> Iterator[Finding]:
    if not isinstance(value, list):
        yield Finding("wrong-type", where, "expected a list")
        return
    if not value and name in ("Choices", "Branches"):
        yield Finding("wrong-value", where, "is empty; it needs one entry at least")
    for index, item in enumerate(value):
        if not isinstance(item, Mapping):
            yield Finding("wrong-type", f"{where}/{index}", "expected an object")


def number(value: Any, where: str, least: int, most: int, whole: bool) -> Iterator[Finding]:
    """Yield what is wrong with a number."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or (whole and int(value) != value):
        kind = "a whole number" if whole else "a number"
        yield Finding("wrong-type", where, f"expected {kind}, not {value!r}")
    elif not least <= value <= most:
        yield Finding("wrong-value", where, f"is {value}; the limits are {least} and {most}")


def retrier(fields: Mapping[str, Any], path: str) -> Iterator[Finding]:
    """Yield what is wrong with the numbers of a retrier."""
    yield from _values(fields, path, "JSONPath", ("IntervalSeconds", "MaxAttempts"))
    yield from _values(fields, path, "JSONPath", ("MaxDelaySeconds",))
    rate, where = fields.get("BackoffRate", 2.0), f"{path}/BackoffRate"
    if isinstance(rate, bool) or not isinstance(rate, int | float):
        if not is_placeholder(rate):
            yield Finding("wrong-type", where, f"expected a number, not {rate!r}")
    elif rate < 1:
        yield Finding("wrong-value", where, f"is {rate}; the least is 1.0")
    if fields.get("JitterStrategy", "NONE") not in ("FULL", "NONE"):
        text = f"{fields['JitterStrategy']!r} is unknown; expected FULL or NONE"
        yield Finding("wrong-value", f"{path}/JitterStrategy", text)
    first, most = fields.get("IntervalSeconds", 1), fields.get("MaxDelaySeconds")
    if isinstance(most, int) and isinstance(first, int) and most <= first:
        text = f"is {most}; it must be more than IntervalSeconds, {first}"
        yield Finding("wrong-value", f"{path}/MaxDelaySeconds", text)
