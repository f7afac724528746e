from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orchestration.planning.telling.axes import axis


@given(some.lists(some.floats(min_value=1e-3, max_value=1e9), min_size=1, max_size=5))
def test_an_axis_shows_every_value_and_has_several_marks(values: list[float]) -> None:
    drawn = axis("seconds", values, str)
    assert all(0 < drawn.at(value) < 100 for value in values)
    assert all(0 <= drawn.at(mark) <= 100 for mark in drawn.marks)
    assert 3 <= len(drawn.marks) <= 13
    assert list(drawn.marks) == sorted(set(drawn.marks))


def test_equal_ratios_are_equally_far_apart() -> None:
    drawn = axis("seconds", [1, 100], str)
    assert drawn.at(10) - drawn.at(1) == pytest.approx(drawn.at(100) - drawn.at(10))


def test_equal_values_lie_in_the_middle() -> None:
    assert axis("seconds", [42, 42], str).at(42) == pytest.approx(50)
