"""The page about a decision, in a browser."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestration.runtime.verdict.page import page
from tests.patience import PATIENCE_S
from tests.planning.telling.test_report_in_browser import browser

ROWS: list[Any] = [
    {
        "name": f"epoch-{number}",
        "uri": f"s3://b/epoch-{number}/",
        "metrics": {"accuracy": 0.9 + number / 100, "latency": 30.0},
        "slices": {"language": {"de": 0.85, "<fr>": 0.79}},
        "misses": [],
    }
    for number in range(3)
]
FAILED = {
    "name": "epoch-3",
    "uri": "s3://b/epoch-3/",
    "metrics": {},
    "slices": {},
    "problem": "it wrote no evaluation.json & <script>alert(1)</script>",
}
REPORT: dict[str, Any] = {
    "pipeline": "digits",
    "stage": "judge",
    "run": "0123456789ab",
    "metric": "accuracy",
    "direction": "max",
    "threshold": 0.9,
    "failures_allowed": 1,
    "metrics": {"accuracy": {}, "latency": {"maximum": 40}},
    "slices": {"language": {"minimum": 0.8}},
    "outcome": "promoted",
    "explanation": "accuracy of epoch-2 is better than the champion's by 0.04",
    "best": "epoch-2",
    "evaluations": [*ROWS, FAILED],
    "champion": {
        "source": "the endpoint live",
        "margin": 0.01,
        "confidence": 0.95,
        "uri": "s3://b/old/",
        "metric": 0.88,
        "problem": "",
    },
    "improvement": 0.04,
    "interval": {"low": 0.02, "high": 0.06, "examples": 200},
}


def shown(report: Any, folder: Path) -> str:
    """Return the page as headless Chromium understands it; nothing may go wrong in it."""
    path = folder / "report.html"
    path.write_text(page(report), encoding="utf-8")
    done = subprocess.run(
        [
            browser(),
            *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--enable-logging=stderr", "--log-level=0", "--virtual-time-budget=2000"),
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert [line for line in done.stderr.splitlines() if ":CONSOLE" in line] == []
    return done.stdout


def test_the_page_shows_what_decided(tmp_path: Path) -> None:
    shows = shown(REPORT, tmp_path)
    assert '<strong id="outcome">Promoted</strong>' in shows
    assert len(re.findall('<circle class="point"', shows)) == 3
    assert len(re.findall('<line class="interval"', shows)) == 1
    assert '<tr class="best"><td>epoch-2</td>' in shows
    rule = "the largest accuracy, at least 0.9, latency at most 40, every language at least 0.8"
    assert rule in shows
    # What a script has written is text here, and never a part of the page.
    assert "it wrote no evaluation.json &amp; &lt;script&gt;" in shows
    assert '<tr class="failed"><td>&lt;fr&gt;</td>' in shows


@pytest.mark.parametrize("text", ["http://", "https://", "src=", "@import", "<script"])
def test_the_page_needs_nothing_else(text: str) -> None:
    assert text not in page(REPORT)


def test_a_first_run_and_one_without_checkpoints_have_a_page_too(tmp_path: Path) -> None:
    first = {**REPORT, "champion": {**REPORT["champion"], "uri": None}, "improvement": None}
    shows = shown({**first, "interval": None}, tmp_path)
    assert "There is no champion yet: the endpoint live." in shows
    nothing = {**REPORT, "evaluations": [], "best": None, "outcome": "no_checkpoint"}
    assert "There is no checkpoint" in page({**nothing, "improvement": None})
