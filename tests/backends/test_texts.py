"""Text among the bytes of what is given whole is found, and nothing else is."""

from __future__ import annotations

import re
from typing import Any

import pytest

from orchestration.backends import stepfunctions
from orchestration.expressions import Result, Tree
from orchestration.graph import Call, Operation, Output
from orchestration.local.engine import jsonata as engine
from tests.backends.workflows import read, workflow
from tests.oracles import JsonataError, JsonataReference

LISTED = {"BinaryListValues": [[1, "a"], {"b": "c"}], "StringValue": "text"}
"""Lists and objects are bytes as they are, with the text in them."""
CASES: dict[str, tuple[str, str, Tree, Any, str | None]] = {
    "none in a list": ("kinesis", "PutRecords", "Records", [], None),
    "lists of a list": (
        *("kinesis", "PutRecords", "Records"),
        [{"Data": ["a"], "PartitionKey": "a"}, {"Data": 1, "PartitionKey": "b"}],
        None,
    ),
    "one of a list": (
        *("kinesis", "PutRecords", "Records"),
        [{"Data": ["a"], "PartitionKey": "a"}, {"Data": "b", "PartitionKey": "b"}],
        "Records[].Data",
    ),
    "the only one": ("firehose", "PutRecord", "Record", {"Data": "a"}, "Record.Data"),
    "a shape that holds itself": ("emr", "RunJobFlow", "Configurations", [{}], None),
    "another type": ("firehose", "PutRecord", "Record", "a", None),
    "lists of a map": ("sqs", "SendMessage", "MessageAttributes", {"a": LISTED}, None),
    "one of a map": (
        *("sqs", "SendMessage", "MessageAttributes"),
        {"a": LISTED, "b": {"BinaryListValues": [[1], "c"]}},
        "MessageAttributes.*.BinaryListValues[]",
    ),
    "one of a list of maps": (
        *("sqs", "SendMessageBatch", "Entries"),
        [{"Id": "a"}, {"Id": "b", "MessageAttributes": {"c": {"BinaryValue": "d"}}}],
        "Entries[].MessageAttributes.*.BinaryValue",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_text_for_bytes_is_found_where_it_is(
    case: str, jsonata_reference: JsonataReference
) -> None:
    service, operation, field, value, place = CASES[case]
    request: dict[str, Tree] = {str(field): Result("look", "found")}
    look = read("look", "key", {"found": Output(("found",))})
    send = Call(name="send", operation=Operation(service, operation, request))
    made: Any = stepfunctions.render(workflow(look, send))
    text = made["States"]["send"]["Arguments"][field].removeprefix("{%").removesuffix("%}")
    bindings = {"look": {"found": value}}
    if place is None:
        assert jsonata_reference(text, bindings) == value
        assert engine.evaluate(text, bindings) == value
        return
    said = re.escape(f"stage send: {service}:{operation}: {place} is text")
    with pytest.raises(JsonataError, match=said):
        jsonata_reference(text, bindings)
    with pytest.raises(engine.JsonataError, match=said):
        engine.evaluate(text, bindings)
