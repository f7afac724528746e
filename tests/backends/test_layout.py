"""JSON laid out for files: any document comes back, in lines that are as long as they may be."""

from __future__ import annotations

import json

from hypothesis import given

from orchestration.backends.layout import laid_out
from orchestration.expressions import Json
from tests.expressions.strategies import JSON


@given(JSON)
def test_a_document_comes_back_as_it_went_in(document: Json) -> None:
    assert json.loads(laid_out(document)) == document


@given(JSON)
def test_no_line_holds_a_container_that_does_not_fit(document: Json) -> None:
    for line in laid_out({"document": [document] * 4}).split("\n"):
        assert len(line) <= 100 or not line.rstrip(",").endswith(("}", "]"))


def test_what_fits_into_a_line_stands_in_one() -> None:
    assert laid_out({"a": [1, {"b": None}], "c": "é" * 90}) == (
        '{\n  "a": [1, {"b": null}],\n  "c": "' + "é" * 90 + '"\n}\n'
    )
    assert laid_out({"a": [], "b": {}}) == '{"a": [], "b": {}}\n'
