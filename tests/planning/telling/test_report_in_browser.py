"""The report in a browser: what its figures hold, and that its console stays empty."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestration.planning.search.answers.plans import Plans
from orchestration.planning.search.find import find_plans
from orchestration.planning.telling.report import page
from tests.patience import PATIENCE_S
from tests.planning.telling.test_report import SPACE, TASK

pytest.importorskip("plotly")

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
# What is in the figures once they are drawn, as the page's own script sees them.
PROBE = """
<script>
window.addEventListener("load", () => setTimeout(() => {
  const figures = [...document.querySelectorAll(".js-plotly-plot")].map(figure => ({
    title: figure.layout.title ? figure.layout.title.text : "",
    drawn: figure.querySelectorAll("svg.main-svg").length > 0,
    points: figure.querySelectorAll(".point, .points path").length,
    traces: figure.data.map(t => ({
      name: t.name || "", x: Array.from(t.x || []), y: Array.from(t.y || []), type: t.type || "",
    })),
  }));
  const probe = document.createElement("pre");
  probe.id = "probe";
  probe.textContent = JSON.stringify(figures);
  document.body.appendChild(probe);
}, 500));
</script>
"""


def browser() -> str:
    if CHROMIUM is None:
        reason = "chromium is not installed: `make setup-chromium`"
        if os.environ.get("ORCHESTRATION_REQUIRE_CHROMIUM"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return CHROMIUM


def opened(text: str, folder: Path) -> tuple[list[dict[str, Any]], list[str]]:
    """The figures of a page in headless Chromium, and what it wrote to its console."""
    path = folder / "plan.html"
    path.write_text(text.replace("</body>", f"{PROBE}</body>"))
    done = subprocess.run(
        [
            browser(),
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--enable-logging=stderr", "--log-level=0", "--virtual-time-budget=20000"),
            f"--user-data-dir={folder / 'profile'}",
            "--dump-dom",
            path.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    console = [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
    [probe] = re.findall(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    unescaped = probe.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return json.loads(unescaped), console


@pytest.fixture(scope="module")
def plans() -> Plans:
    return find_plans(TASK, SPACE)


@pytest.fixture(scope="module")
def drawn(
    plans: Plans, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[dict[str, Any]], list[str]]:
    return opened(page(plans), tmp_path_factory.mktemp("report"))


def numbers(figures: list[dict[str, Any]], axis: str) -> list[float]:
    values = [value for figure in figures for trace in figure["traces"] for value in trace[axis]]
    return [float(value) for value in values if isinstance(value, int | float)]


def test_every_figure_is_drawn_and_the_console_is_empty(
    drawn: tuple[list[dict[str, Any]], list[str]],
) -> None:
    figures, console = drawn
    assert console == []
    assert len(figures) >= 3
    assert all(figure["drawn"] for figure in figures)
    assert sum(figure["points"] for figure in figures) > 10


def test_the_figures_hold_the_plans_own_numbers(
    plans: Plans, drawn: tuple[list[dict[str, Any]], list[str]]
) -> None:
    figures, _ = drawn
    shown = numbers(figures, "x") + numbers(figures, "y")

    def is_shown(value: float) -> bool:
        return any(abs(drawn - value) <= 0.006 * abs(value) + 0.006 for drawn in shown)

    assert plans.chosen is not None
    for plan in plans.front:
        assert plan.cost_usd is not None
        assert is_shown(plan.cost_usd.expected)
        assert is_shown(plan.time_s.expected / 3600)
    counts = [plan.instance_count for plan in plans.scaling]
    assert any(set(counts) <= set(trace["x"]) for f in figures for trace in f["traces"])


def test_a_browser_that_finds_an_error_would_say_so(tmp_path: Path, plans: Plans) -> None:
    broken = page(plans).replace("</body>", "<script>missing()</script></body>")
    _, console = opened(broken, tmp_path)
    assert any("missing is not defined" in line for line in console)
