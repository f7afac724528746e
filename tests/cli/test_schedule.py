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
    assert len(told["warnings"]) == 1


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
