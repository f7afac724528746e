"""Places of one value in a document: those of JMESPath that are taken mean what they mean there."""

from __future__ import annotations

import json
import re
from typing import Any

import jmespath
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jmespath.exceptions import JMESPathError

from orchestration.backends.stepfunctions.calls.outputs import at as as_jsonata
from orchestration.checks.places import place, value_at
from orchestration.execution.outputs import MISSING, at
from orchestration.graph import First, codec
from orchestration.runtime.verdict import reports
from tests.oracles import JsonataReference

NAMES = st.sampled_from(["a", "b", "name", "x-y", "v:l", "it's", 'quo"te', "ä b"])
TEXTS = st.sampled_from(["a", "f1", "", "1", "true", "x y"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, -1.25, 1e9])
LITERALS = TEXTS | NUMBERS | st.booleans()
SCALARS = st.none() | LITERALS
DOCUMENTS: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner, max_size=3)
        | st.lists(st.dictionaries(st.sampled_from(["a", "name"]), inner, max_size=2), max_size=3)
    ),
    max_leaves=12,
)
FIELDS = NAMES
INDEXES = st.integers(-3, 3)
FILTERS = st.builds(First, st.sampled_from(["a", "name"]), LITERALS)
PLACES = st.lists(FIELDS | INDEXES | FILTERS, min_size=1, max_size=4)


def written(parts: list[Any]) -> str:
    """Write a place as JMESPath; a number or a filter at its beginning is about the document."""
    text = ""
    for part in parts:
        if isinstance(part, First):
            name = json.dumps(part.field, ensure_ascii=False)
            text += f"[?{name} == `{json.dumps(part.value)}`] | [0]"
        elif isinstance(part, int):
            text += f"[{part}]"
        else:
            dot = "." if text else ""
            text += f"{dot}{json.dumps(part, ensure_ascii=False)}"
    return text


@given(PLACES, DOCUMENTS)
def test_a_place_gives_what_jmespath_gives(parts: list[Any], document: Any) -> None:
    text = written(parts)
    assert place(text) == tuple(parts)
    value = at(document, place(text))
    assert (None if value is MISSING else value) == jmespath.search(text, document), text


@given(st.text(st.sampled_from("ab_019-:/+$%#;~^é"), min_size=1, max_size=6))
def test_no_name_without_quotes_means_something_else_in_jmespath(name: str) -> None:
    assert place(name) == (name,)
    try:
        meant = jmespath.compile(name).parsed
    except JMESPathError:
        return  # It takes the name in quotes only.
    assert meant == {"type": "field", "children": [], "value": name}


@given(PLACES, DOCUMENTS)
def test_the_job_that_decides_reads_the_same(parts: list[Any], document: Any) -> None:
    path = [
        {"field": part.field, "value": part.value} if isinstance(part, First) else part
        for part in parts
    ]
    value = at(document, tuple(parts))
    try:
        read = reports._at(document, path)
    except reports.NotUsable:
        assert value is MISSING
    else:
        assert value is MISSING or read == value


@given(PLACES, st.dictionaries(NAMES, DOCUMENTS))
def test_step_functions_finds_the_same(
    jsonata_reference: JsonataReference, parts: list[Any], document: Any
) -> None:
    output = value_at(("holder", First("a", "start"), *parts))
    assert output.path == ("holder",)
    whole = {"holder": [{"a": "other"}, {**document, "a": "start"}]}
    value = at(whole, (*output.path, *output.inside))
    text = f"{{'found': {as_jsonata('$d', output)}}}"
    answer = jsonata_reference(text, {"d": whole})
    assert answer == ({} if value is MISSING else {"found": value}), text


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("timing.p95_ms", ("timing", "p95_ms")),
        ("metrics.validation:loss", ("metrics", "validation:loss")),
        ("scores[-1].value", ("scores", -1, "value")),
        ('metrics."a.b"[0]', ("metrics", "a.b", 0)),
        ("[0].a", (0, "a")),
        ("m[?name=='f1'] | [0].value", ("m", First("name", "f1"), "value")),
        ("m[? name == `f1` ]|[0]", ("m", First("name", "f1"))),
        ("m[?k==`3`] | [0][1]", ("m", First("k", 3), 1)),
        ("m[?k==`true`] | [0].v", ("m", First("k", True), "v")),
        (
            "m[?name=='f1'] | [0].slices[?of=='de'] | [0].value",
            ("m", First("name", "f1"), "slices", First("of", "de"), "value"),
        ),
    ],
)
def test_places_are_read(text: str, parts: tuple[Any, ...]) -> None:
    assert place(text) == parts
    output = value_at(parts, kind="number")
    assert codec.decode(json.loads(json.dumps(codec.encode(output)))) == output


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "got no text"),
        ("a..b", "'a..b' is no place of one value, from '..b' on; write fields and numbers"),
        ("a.", "is no place of one value, from '.' on"),
        (".a", "is no place of one value, from '.a' on"),
        ("a.[0]", "is no place of one value"),
        ("a b", "names with other letters in quotes"),
        ("a[*].b", "'a[*].b': * and [] give a list, and one value is needed; name an element"),
        ("a[].b", "* and [] give a list"),
        ("*.b", "* and [] give a list"),
        ("a[0:2]", "slices give a list"),
        ("max(a)", "functions are not taken; let the document hold the value"),
        ("max_by(a, &b).c", "functions are not taken"),
        ("a || b", "|| is not taken; name one place"),
        ("a[?n=='x'].v", "[?n=='x'] gives a list; take its first: [?n=='x'] | [0]"),
        ("a[?n=='x'].v | [0]", "take its first: [?n=='x'] | [0]"),
        ("a[?n>`1`] | [0]", "a filter compares one field with one value, as in metrics[?name=="),
        ("a[?n=='x' && m=='y'] | [0]", "a filter compares one field with one value"),
        ("a[?n.m=='x'] | [0]", "a filter compares one field with one value"),
        ("a[?n==`null`] | [0]", "expected a text, a number, true or false in `…`, got `null`"),
        ("a[?n==`[1]`] | [0]", "expected a text, a number, true or false"),
        ("a[?n==`9007199254740993`] | [0]", "expected a text, a number, true or false"),
        ("a[?n==`NaN`] | [0]", "expected a text, a number, true or false"),
        ('a."b', "is no place of one value"),
    ],
)
def test_the_rest_of_jmespath_is_refused_with_a_way_out(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        place(text)
