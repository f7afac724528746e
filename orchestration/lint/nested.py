"""Map and Parallel states: what is inside of them, and how it runs.

https://docs.aws.amazon.com/step-functions/latest/dg/state-map-distributed.html (read November
2026).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from orchestration.errors import near
from orchestration.lint import values
from orchestration.lint.findings import Finding
from orchestration.lint.machines import State
from orchestration.lint.values import is_expression, is_placeholder

_DISTRIBUTED: Final = (
    *("ItemReader", "ItemBatcher", "ResultWriter", "ToleratedFailureCount"),
    *("ToleratedFailurePercentage", "ToleratedFailureCountPath", "ToleratedFailurePercentagePath"),
)
_READERS: Final = frozenset({"s3:getObject", "s3:listObjectsV2"})
_WRITERS: Final = frozenset({"s3:putObject"})
_PARTS: Final[dict[tuple[str, ...], dict[str, frozenset[str]]]] = {
    ("ItemReader", "ReaderConfig"): {
        "InputType": frozenset({"CSV", "JSON", "JSONL", "MANIFEST", "PARQUET"}),
        "Transformation": frozenset({"NONE", "LOAD_AND_FLATTEN"}),
        "ManifestType": frozenset({"ATHENA_DATA", "S3_INVENTORY"}),
        "CSVHeaderLocation": frozenset({"FIRST_ROW", "GIVEN"}),
        "CSVDelimiter": frozenset({"COMMA", "PIPE", "SEMICOLON", "SPACE", "TAB"}),
        **dict.fromkeys(("CSVHeaders", "MaxItems", "MaxItemsPath", "ItemsPointer"), frozenset()),
    },
    ("ItemBatcher",): dict.fromkeys(
        (
            *("BatchInput", "MaxItemsPerBatch", "MaxItemsPerBatchPath"),
            *("MaxInputBytesPerBatch", "MaxInputBytesPerBatchPath"),
        ),
        frozenset(),
    ),
    ("ResultWriter", "WriterConfig"): {
        "Transformation": frozenset({"NONE", "COMPACT", "FLATTEN"}),
        "OutputType": frozenset({"JSON", "JSONL"}),
    },
}
"""Fields of a distributed Map's parts, with their values where these are named."""
_NUMBERS: Final = {
    "MaxItems": (1, 100_000_000),
    "MaxItemsPerBatch": (1, 100_000_000),
    "MaxInputBytesPerBatch": (1, 262_144),
}


def findings(state: State) -> Iterator[Finding]:
    """Yield what is wrong with a Map state."""
    if state.type != "Map":
        return
    processor = state.fields.get("ItemProcessor")
    config = processor.get("ProcessorConfig") if isinstance(processor, Mapping) else None
    path = f"{state.path}/ItemProcessor/ProcessorConfig"
    if isinstance(config, Mapping):
        yield from _config(config, path)
    elif config is not None:
        yield Finding("wrong-type", path, "expected an object")
    if not state.is_distributed and not _is_open(config):
        for name in _DISTRIBUTED:
            if name in state.fields:
                text = "works in a distributed Map only; give ItemProcessor a ProcessorConfig with"
                yield Finding("wrong-value", f"{state.path}/{name}", f"{text} Mode DISTRIBUTED")
    yield from _resource(state, "ItemReader", _READERS)
    yield from _resource(state, "ResultWriter", _WRITERS)
    for place, known in _PARTS.items():
        yield from _part(state, place, known)
    if "ItemReader" in state.fields and "Items" in state.fields:
        text = "ItemReader and Items exclude each other; remove one"
        yield Finding("exclusive-fields", f"{state.path}/Items", text)
    items = state.fields.get("Items")
    is_open = is_expression(items) or is_placeholder(items)
    if items is not None and not isinstance(items, list | Mapping) and not is_open:
        yield Finding("wrong-type", f"{state.path}/Items", "expected a list or an expression")


def _is_open(config: object) -> bool:
    return isinstance(config, Mapping) and is_placeholder(config.get("Mode"))


def _config(config: Mapping[str, Any], path: str) -> Iterator[Finding]:
    mode, kind = config.get("Mode", "INLINE"), config.get("ExecutionType")
    for name in config:
        if name not in ("Mode", "ExecutionType"):
            hint = near(str(name), ["Mode", "ExecutionType"])
            yield Finding("unknown-field", f"{path}/{name}", f"is unknown{hint}")
    if mode not in ("INLINE", "DISTRIBUTED") and not is_placeholder(mode):
        text = f"{mode!r} is unknown; expected INLINE or DISTRIBUTED"
        yield Finding("wrong-value", f"{path}/Mode", text)
    if mode == "DISTRIBUTED" and kind is None:
        text = "ExecutionType is required with Mode DISTRIBUTED: STANDARD or EXPRESS"
        yield Finding("missing-field", path, text)
    elif kind not in (None, "STANDARD", "EXPRESS") and not is_placeholder(kind):
        text = f"{kind!r} is unknown; expected STANDARD or EXPRESS"
        yield Finding("wrong-value", f"{path}/ExecutionType", text)


def _resource(state: State, field: str, known: frozenset[str]) -> Iterator[Finding]:
    value = state.fields.get(field)
    if not isinstance(value, Mapping):
        return
    path = f"{state.path}/{field}"
    resource = value.get("Resource")
    if not isinstance(resource, str):
        if field == "ItemReader" or "Parameters" in value or "Arguments" in value:
            yield Finding("missing-field", path, "Resource is required")
    elif not is_placeholder(resource) or ":states:::" in resource:
        name = resource.partition(":states:::")[2]
        if name not in known:
            text = f"{resource} does not work here{near(name, known)}"
            yield Finding("unknown-integration", f"{path}/Resource", text)
    instead = "Parameters" if state.language == "JSONPath" else "Arguments"
    other = "Arguments" if state.language == "JSONPath" else "Parameters"
    if other in value:
        text = f"the state is in {state.language}; write {instead}"
        yield Finding("wrong-language", f"{path}/{other}", text)


def _part(
    state: State, place: tuple[str, ...], known: Mapping[str, frozenset[str]]
) -> Iterator[Finding]:
    fields: Any = state.fields
    for name in place:
        fields = fields.get(name) if isinstance(fields, Mapping) else None
    if not isinstance(fields, Mapping):
        return
    path = "/".join((state.path, *place))
    for name, value in fields.items():
        if (plain := str(name).removesuffix(".$")) not in known:
            yield Finding("unknown-field", f"{path}/{name}", f"is unknown{near(plain, known)}")
            continue
        is_open = is_expression(value) or is_placeholder(value)
        if known[plain] and isinstance(value, str) and not is_open and value not in known[plain]:
            text = f"{value!r} is unknown{near(value, known[plain])}"
            yield Finding("wrong-value", f"{path}/{name}", text)
        if plain in _NUMBERS and not is_open and f"{plain}.$" not in fields:
            yield from values.number(value, f"{path}/{name}", *_NUMBERS[plain], True)
    if fields.get("CSVHeaderLocation") == "GIVEN" and "CSVHeaders" not in fields:
        yield Finding("missing-field", path, "CSVHeaders is required where the headers are GIVEN")
    if place == ("ItemBatcher",) and not any(str(name).startswith("Max") for name in fields):
        text = "MaxItemsPerBatch or MaxInputBytesPerBatch is required"
        yield Finding("missing-field", path, text)
