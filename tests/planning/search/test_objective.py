"""Objectives as text."""

from __future__ import annotations

import pytest

from orchestration.planning.search.objective import (
    FASTEST,
    Objective,
    by_deadline,
    within_budget,
)


@pytest.mark.parametrize(
    ("objective", "text"),
    [
        (FASTEST, "fastest"),
        (by_deadline(7200), "cheapest within 2 h"),
        (within_budget(500), "fastest for at most $500"),
    ],
)
def test_objectives_are_words(objective: Objective, text: str) -> None:
    assert str(objective) == text
