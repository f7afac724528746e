"""Pauses are scaled, limits are not; whoever waits for work is told of its end."""

from __future__ import annotations

import threading

import pytest

from orchestration.local.account.activity import Activity
from orchestration.local.account.clock import Clock

JOB = ("DescribeTrainingJob", "job")


def test_a_pause_is_scaled_and_a_limit_is_as_long_as_on_aws() -> None:
    clock = Clock(0.02)
    assert clock.pause(300) == pytest.approx(6)
    assert clock.limit(3600) == 3600


def test_a_limit_lasts_as_many_pauses_as_on_aws_in_slow_motion() -> None:
    assert Clock(2).limit(10) == Clock(2).pause(10) == 20


def test_what_does_not_run_is_not_waited_for() -> None:
    assert Activity().wait(JOB, 60) is False


def test_what_runs_on_is_said_to_run_on() -> None:
    activity = Activity()
    activity.begin(JOB)
    assert activity.wait(JOB, 0.01) is True


def test_the_end_wakes_whoever_waits() -> None:
    activity = Activity()
    activity.begin(JOB)
    threading.Timer(0.05, activity.end, [JOB]).start()
    assert activity.wait(JOB, 60) is False
