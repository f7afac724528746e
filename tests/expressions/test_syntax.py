"""The written form of references, there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration import Expression, Ref, join, parameter, run_id
from orchestration.expressions import Item, Join
from orchestration.refs import parse, written

NAMES = st.from_regex(r"[a-z][a-z0-9]{0,3}(_[a-z0-9]{1,3}){0,2}", fullmatch=True)
SIMPLE: st.SearchStrategy[Expression[object]] = st.one_of(
    st.builds(Ref, NAMES, NAMES), NAMES.map(parameter), st.just(run_id())
)
WRITABLE = SIMPLE | st.lists(st.text() | SIMPLE, max_size=4).map(lambda parts: join(*parts))


@given(WRITABLE)
def test_what_is_written_reads_back(expression: Expression[object]) -> None:
    assert parse(written(expression)) == expression


def test_the_forms() -> None:
    form = {"join": ["s3://", {"parameter": "bucket"}, "/", {"run": "id"}, {"ref": "a.b_c"}]}
    assert parse(form) == Join(("s3://", parameter("bucket"), "/", run_id(), Ref("a", "b_c")))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"parametr": "x"}, "did you mean 'parameter'"),
        ({"ref": "train"}, r"write \{ref: <stage>\.<output>\}"),
        ({"ref": "Train.x"}, r"write \{ref: <stage>\.<output>\}"),
        ({"ref": "a.b.c"}, r"write \{ref: <stage>\.<output>\}"),
        ({"ref": 3}, "expected a reference"),
        ({"run": "name"}, "expected a reference"),
        ({"join": "text"}, "expected a reference"),
        ({"join": [["x"]]}, "expected a reference"),
        ({"parameter": "a", "ref": "b.c"}, "expected a reference"),
        ({}, "expected a reference"),
        ("text", "expected a reference"),
    ],
)
def test_what_is_no_reference_says_how_one_is_written(wrong: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse(wrong)


def test_what_only_steps_have_can_not_be_written() -> None:
    with pytest.raises(ValueError, match="no written form"):
        written(Item())
