"""A reference refuses to be taken for its value, and is plain data otherwise."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import pytest

from orchestration import (
    ExpressionError,
    Ref,
    ReferenceUseError,
    join,
    parameter,
    run_id,
    time_text,
)
from orchestration.refs import parse, written

REF: Any = Ref[str]("train", "checkpoints")

USES: dict[str, tuple[Callable[[], object], str]] = {
    "str": (lambda: str(REF), "join("),
    "f-string": (lambda: f"s3://{REF}/x", "join("),
    "f-string with !s": (lambda: f"{REF!s}", "join("),
    "str.format": (lambda: "{}".format(REF), "join("),  # noqa: UP032 - this is what is tested
    "percent": (lambda: "%s" % REF, "join("),  # noqa: UP031 - this is what is tested
    "text + ref": (lambda: "s3://" + REF, "join("),
    "ref + text": (lambda: REF + "/x", "join("),
    "bool": (lambda: bool(REF), "when="),
    "if not": (lambda: not REF, "when="),
    "and": (lambda: REF and 1, "when="),
    "for": (lambda: list(REF), "whole"),
    "in": (lambda: "x" in REF, "whole"),
    "index": (lambda: REF["id"], "whole"),
    "unpacking": (lambda: [*REF], "whole"),
    "less": (lambda: REF < 1, "when="),
    "at least": (lambda: REF >= 1, "when="),
    "sorted": (lambda: sorted([REF, REF]), "when="),
}


@pytest.mark.parametrize("use", USES)
def test_using_a_reference_as_a_value_is_refused_with_the_way_out(use: str) -> None:
    action, way_out = USES[use]
    with pytest.raises(ReferenceUseError, match=r"train\.checkpoints") as error:
        action()
    assert way_out in str(error.value)


@pytest.mark.parametrize("made", [join("a", REF), parameter("bucket"), run_id()])
def test_every_expression_refuses_an_f_string(made: object) -> None:
    with pytest.raises(ReferenceUseError, match=r"use join\("):
        f"{made}"


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
@pytest.mark.parametrize("made", [REF, join("s3://", REF), parameter("bucket"), run_id()])
def test_a_copy_equals_its_original(copied: Callable[[object], object], made: object) -> None:
    assert copied(made) == made
    assert hash(copied(made)) == hash(made)


def test_equality_and_hash_are_those_of_data() -> None:
    assert Ref("a", "x") == Ref("a", "x") != Ref("a", "y")
    assert len({Ref("a", "x"), Ref("a", "x"), Ref("b", "x")}) == 2


def test_repr_names_the_output() -> None:
    assert repr(REF) == "<reference to train.checkpoints>"


def test_a_reference_is_frozen() -> None:
    with pytest.raises(AttributeError):
        REF.stage = "other"


OF: dict[str, Any] = {"of": {"parameter": "until"}}


@pytest.mark.parametrize(
    "fields",
    [
        OF,
        {**OF, "minus_days": 7},
        {**OF, "minus_days": 1, "minus_hours": 6, "format": "%Y/%m/%d %% at %H:%M:%S"},
    ],
)
def test_times_are_read_as_they_are_written(fields: dict[str, Any]) -> None:
    assert written(parse({"time_text": fields})) == {"time_text": fields}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "time_text: of: is required"),
        ({"of": "2027-03-01"}, "expected a reference, got '2027-03-01'"),
        ({**OF, "minus_day": 7}, "time_text has no 'minus_day'; did you mean 'minus_days'?"),
        ({**OF, "minus_days": -1}, "minus_days is a whole number from 0 to 36,600, not -1"),
        ({**OF, "minus_hours": True}, "minus_hours is a whole number from 0 to 36,600, not True"),
        ({**OF, "minus_days": 36_600, "minus_hours": 1}, "are 36,600 days at the most"),
        ({**OF, "format": "%Y-%j"}, "format has %j; there is %Y, %m, %d, %H, %M, %S, and %% for"),
        ({**OF, "format": "100 %"}, "format has %; there is"),
        ({**OF, "format": ""}, "format is a text such as %Y-%m-%dT%H:%M:%SZ, not ''"),
    ],
)
def test_times_that_are_written_wrong_are_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        parse({"time_text": fields})


def test_a_time_that_is_known_is_no_reference() -> None:
    known: Any = "2027-03-01"
    with pytest.raises(ExpressionError, match="write the text itself for '2027-03-01'"):
        time_text(known)
