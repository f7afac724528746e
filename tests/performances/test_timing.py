"""How long pauses last."""

from __future__ import annotations

import time

import pytest

from orchestration.execution.effects import Deadline, Pause
from orchestration.execution.timing import TIME_SCALE, allowed, pause_length

NOW = 1000.0


def test_a_pause_lasts_its_seconds() -> None:
    assert pause_length(Pause(30), NOW) == 30


def test_a_pause_ends_at_its_deadline() -> None:
    assert pause_length(Pause(30, deadline=NOW + 4), NOW) == 4


def test_a_pause_after_its_deadline_takes_no_time() -> None:
    assert pause_length(Pause(30, jitter=True, deadline=NOW - 1), NOW) == 0


def test_jitter_takes_up_to_half_of_a_pause_away() -> None:
    lengths = {pause_length(Pause(30, jitter=True), NOW) for _ in range(50)}
    assert len(lengths) > 1
    assert 15 <= min(lengths) <= max(lengths) <= 30


@pytest.mark.parametrize("jitter", [False, True])
def test_time_scale_shortens_pauses_and_leaves_deadlines(
    monkeypatch: pytest.MonkeyPatch, jitter: bool
) -> None:
    monkeypatch.setenv(TIME_SCALE, "0.1")
    assert pause_length(Pause(30, jitter=jitter), NOW) <= 3
    assert pause_length(Pause(300, deadline=NOW + 4), NOW) == 4
    assert pause_length(Pause(30), NOW, time_scale=0.5) == 15


def test_a_deadline_counts_from_a_moment_that_another_process_noted() -> None:
    since = time.time() - 40
    assert allowed(Deadline(100)) == 100
    assert 59 < allowed(Deadline(100, since=since)) <= 60
    assert allowed(Deadline(30, since=since)) < -9


def test_a_deadline_counts_from_the_start_of_a_run_that_was_started_again() -> None:
    now = time.time()
    assert 89 < allowed(Deadline(100, since=now - 500), begun=now - 10) <= 90
    assert 59 < allowed(Deadline(100, since=now - 40), begun=now - 500) <= 60


def test_time_scale_shortens_only_deadlines_of_what_is_idle() -> None:
    assert allowed(Deadline(100), time_scale=0.1) == 100
    assert allowed(Deadline(100, idle=True), time_scale=0.1) == 10
