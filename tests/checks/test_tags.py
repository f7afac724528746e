"""Tags that every service takes."""

from __future__ import annotations

import pytest

from orchestration.checks.tags import problems


@pytest.mark.parametrize(
    ("keys", "alike"),
    [(("Team", "team"), True), (("STRASSE", "straße"), False), (("straße", "strasse"), False)],
)
def test_keys_are_alike_by_case_and_by_nothing_else(keys: tuple[str, str], alike: bool) -> None:
    told = [problem.field for problem in problems(dict.fromkeys(keys, "x"))]
    assert told == ([keys[1]] if alike else [])
