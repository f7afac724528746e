"""The JSONPath of batch transforms."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.checks.jsonpath import parse, select

ROW = ["7", "one", "two", "three"]
RECORD = {"id": 7, "features": {"a": 1, "b": 2}, "SageMakerOutput": [0.25, 0.75]}


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("$", ROW, ROW),
        ("$[1:]", ROW, ["one", "two", "three"]),
        ("$[0,2:]", ROW, ["7", "two", "three"]),
        ("$[0,-1]", ROW, ["7", "three"]),
        ("$[:2]", ROW, ["7", "one"]),
        ("$[-1]", ROW, "three"),
        ("$[*]", ROW, ROW),
        ("$.features", RECORD, {"a": 1, "b": 2}),
        ("$.features.a", RECORD, 1),
        ("$['features']['b']", RECORD, 2),
        ("$.features.['a','b']", RECORD, {"a": 1, "b": 2}),
        ("$.features.*", RECORD, {"a": 1, "b": 2}),
        ("$['id','SageMakerOutput']", RECORD, {"id": 7, "SageMakerOutput": [0.25, 0.75]}),
        ("$.SageMakerOutput[0]", RECORD, 0.25),
        ("$['a,b']", {"a,b": 1}, 1),
    ],
)
def test_a_path_selects_a_part(path: str, value: Any, expected: Any) -> None:
    assert select(path, value) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("features", r"it begins with \$: \$, "),
        ("$features", "'features' is none of .name"),
        ("$[one]", "'one' between brackets is no name in quotes, number or range"),
        ("$[?(@.a)]", "between brackets is no name in quotes"),
        ("$..a", "'..a' is none of .name"),
        ("$[1", r"'\[1' is none of .name"),
        ("$." + "a" * 70, "it has 72 characters; the most is 63"),
    ],
)
def test_what_is_no_path_is_refused(path: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        parse(path)


@pytest.mark.parametrize("path", ["$[9]", "$.features", "$[0].a"])
def test_a_part_that_is_missing_is_an_error(path: str) -> None:
    with pytest.raises(ValueError, match="there is"):
        select(path, ROW)
