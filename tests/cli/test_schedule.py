"""``schedule`` shows when a pipeline runs next."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import STAGING, Command

BERLIN = (
    STAGING + "schedule: {cron: 30 2 * * *, timezone: Europe/Berlin, parameters: "
    "{bucket: b, data: s3://b/d}}\n"
)
AFTER = "2027-03-27T00:00Z"


@pytest.fixture
def nightly(tmp_path: Path) -> Path:
    path = tmp_path / "nightly.yaml"
    path.write_text(BERLIN)
    return path


def test_moments_are_told_in_both_clocks(orchestrate: Command, nightly: Path) -> None:
    said = orchestrate("schedule", nightly, "--next", "2", "--after", AFTER)
    assert said.status == 0
    assert said.out.splitlines() == [
        "30 2 * * * in Europe/Berlin, for EventBridge Scheduler cron(30 2 * * ? *)",
        "Sat 2027-03-27 02:30 +0100  2027-03-27 01:30 UTC",
        "Mon 2027-03-29 02:30 +0200  2027-03-29 00:30 UTC",
    ]
    assert "Airflow runs at 03:30" in said.err


def test_one_document_has_them_too(orchestrate: Command, nightly: Path) -> None:
    told = orchestrate("schedule", nightly, "--next", "1", "--after", AFTER, "--json").document
    assert told["next"] == ["2027-03-27T02:30:00+01:00"]
    assert len(told["warnings"]) == 2


def test_no_schedule_and_no_time_are_refused(
    orchestrate: Command, nightly: Path, tmp_path: Path
) -> None:
    (tmp_path / "never.yaml").write_text(STAGING)
    assert orchestrate("schedule", tmp_path / "never.yaml").status == 1
    assert orchestrate("schedule", nightly, "--after", "soon").status == 2


def test_validation_warns_of_it(orchestrate: Command, nightly: Path) -> None:
    said = orchestrate("validate", nightly)
    assert said.status == 0
    assert "does not exist in Europe/Berlin" in said.out + said.err


def test_bounds_and_windows_are_told(orchestrate: Command, tmp_path: Path) -> None:
    path = tmp_path / "often.yaml"
    path.write_text(
        STAGING + "schedule: {rate: 6 hours, start: 2027-01-01, end: 2027-01-01T12:00, "
        "flexible_window_minutes: 15, parameters: {bucket: b, data: s3://b/d}}\n"
    )
    said = orchestrate("schedule", path, "--after", "2026-12-01")
    assert said.out.splitlines() == [
        "every 6 hours from 2027-01-01T00:00Z in UTC, for EventBridge Scheduler rate(6 hours)",
        "until 2027-01-01T12:00Z",
        "Fri 2027-01-01 00:00 +0000  2027-01-01 00:00 UTC",
        "Fri 2027-01-01 06:00 +0000  2027-01-01 06:00 UTC",
        "each within the 15 minutes after; Airflow at once",
    ]
    assert (
        "does not run after 2027-02-01"
        in orchestrate("schedule", path, "--after", "2027-02-01").err
    )
    told = orchestrate("validate", path, "--on", "airflow")
    assert "schedule.flexible_window_minutes: Airflow has no window" in told.err
    told = orchestrate("validate", path, "--on", "step-functions")
    assert "flexible_window" not in told.err


def test_a_time_that_is_over_is_told_and_nonsense_refused(
    orchestrate: Command, tmp_path: Path
) -> None:
    path = tmp_path / "once.yaml"
    given = "parameters: {bucket: b, data: s3://b/d}"
    path.write_text(STAGING + f"schedule: {{at: 2020-01-01T06:00, {given}}}\n")
    said = orchestrate("validate", path)
    assert said.status == 0
    assert "schedule.at: 2020-01-01T06:00Z is over, so it starts no run any more" in said.err
    path.write_text(STAGING + f"schedule: {{rate: 0 hours, end: soon, {given}}}\n")
    said = orchestrate("validate", path)
    assert said.status == 1
    assert "schedule.end: expected a time such as 2027-03-01T06:00, got 'soon'" in said.err
