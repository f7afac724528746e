"""The report in a browser: that it fits its width, and what its figures hold."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from orchestration.planning.search.answers.plans import Plans
from orchestration.planning.search.find import find_plans
from orchestration.planning.telling.report import page
from tests.patience import PATIENCE_S
from tests.planning.telling.test_report import SPACE, TASK

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
# What a frame's page shows once it is laid out. Pointing is not to be had without a driver, so that
# the points are reached as from a keyboard.
PROBE = """
<script>
function shown(page) {
  const box = element => element.getBoundingClientRect();
  const texts = [...page.querySelectorAll("td, th, li, h1, .mark, .label, .bar span, .bar b")];
  const points = [...page.querySelectorAll(".plot")].map(plot =>
    [...plot.querySelectorAll(".point")].map(point => {
      const names = [...point.querySelectorAll(".name")];
      const hidden = names.every(n => getComputedStyle(n).visibility === "hidden");
      point.focus();
      const place = box(point.querySelector("circle"));
      return {
        name: names.map(n => n.textContent), hidden,
        named: names.every(n => getComputedStyle(n).visibility === "visible"),
        edges: names.map(n => [box(n).left, box(n).right]),
        x: place.left + place.width / 2, y: place.top + place.height / 2,
      };
    }));
  const bars = [...page.querySelectorAll(".bars")].map(figure =>
    [...figure.querySelectorAll(".track")].map(track => ({
      width: box(track).width, limit: [...track.querySelectorAll(".limit")].map(
        limit => box(limit).left - box(track).left),
      parts: [...track.querySelectorAll("span")].map(part => [part.title, box(part).width]),
    })));
  return {
    wide: page.documentElement.scrollWidth, font: getComputedStyle(page.body).fontSize,
    right: Math.max(...texts.filter(t => box(t).width).map(t => box(t).right)),
    left: Math.min(...texts.filter(t => box(t).width).map(t => box(t).left)),
    points, bars,
  };
}
window.addEventListener("load", () => {
  const frames = [...document.querySelectorAll("iframe")];
  const probe = document.createElement("pre");
  probe.id = "probe";
  probe.textContent = JSON.stringify(frames.map(frame => shown(frame.contentDocument)));
  document.body.appendChild(probe);
});
</script>
"""
WIDTHS = (390, 1000, 680)
"""Pixels: a phone, a desk, and paper (A4 less its margins), for which the print styles hold."""


Drawn = tuple[list[dict[str, Any]], list[str]]
"""What each frame shows, and the console."""


def browser() -> str:
    if CHROMIUM is None:
        reason = "chromium is not installed: `make setup-chromium`"
        if os.environ.get("ORCHESTRATION_REQUIRE_CHROMIUM"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    return CHROMIUM


def opened(text: str, folder: Path) -> Drawn:
    """A page in frames of several widths, as headless Chromium lays it out, and its console."""
    path = folder / "frames.html"
    printed = text.replace("@media print", "@media all")
    pages = zip(WIDTHS, (text, text, printed), strict=True)
    frames = (
        f'<iframe width="{width}" height="900" style="border:0" srcdoc="{escape(page)}"></iframe>'
        for width, page in pages
    )
    path.write_text(f"<!doctype html><body>{''.join(frames)}{PROBE}</body>")
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
    return json.loads(unescape(probe)), console


@pytest.fixture(scope="module")
def plans() -> Plans:
    return find_plans(TASK, SPACE)


@pytest.fixture(scope="module")
def drawn(plans: Plans, tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    return opened(page(plans), tmp_path_factory.mktemp("report"))


def test_nothing_overflows_on_a_phone_a_desk_or_paper_and_the_console_is_empty(
    drawn: Drawn,
) -> None:
    pages, console = drawn
    assert console == []
    for width, shown in zip(WIDTHS, pages, strict=True):
        assert shown["wide"] <= width
        assert shown["left"] >= 0
        assert shown["right"] <= width


def test_every_point_is_in_its_place_and_has_a_name_that_shows_on_demand(
    plans: Plans, drawn: Drawn
) -> None:
    names = [f"{plan.instance_count} x {plan.instance_type}" for plan in plans.front]
    for width, shown in zip(WIDTHS, drawn[0], strict=True):
        frontier, scaling = shown["points"]
        assert [point["name"][0] for point in frontier] == names
        assert [point["x"] for point in frontier] == sorted(point["x"] for point in frontier)
        assert [point["y"] for point in frontier] == sorted(point["y"] for point in frontier)
        assert len(scaling) == len(plans.scaling)
        for point in [*frontier, *scaling]:
            assert point["hidden"]
            assert point["named"]
            assert all(left >= 0 and right <= width for left, right in point["edges"])


def test_bars_are_as_long_as_the_plan_s_numbers(plans: Plans, drawn: Drawn) -> None:
    assert plans.chosen is not None
    p, machine = plans.chosen.prediction, plans.chosen.configuration.machine
    for shown in drawn[0]:
        memory, step = shown["bars"]
        [limit] = memory[0]["limit"]
        used = sum(width for _, width in memory[0]["parts"]) / memory[0]["width"]
        assert used == pytest.approx(p.memory.need / machine.device_memory_gib, rel=0.02)
        assert used * memory[0]["width"] < limit < memory[0]["width"]
        forward = next(width for name, width in step[0]["parts"] if name.startswith("forward "))
        whole = sum(width for _, width in step[0]["parts"])
        assert forward / whole == pytest.approx(p.time.forward / p.step_time_s, abs=0.02)


def test_a_browser_that_finds_an_error_would_say_so(tmp_path: Path, plans: Plans) -> None:
    broken = page(plans).replace("</body>", "<script>missing()</script></body>")
    _, console = opened(broken, tmp_path)
    assert any("missing is not defined" in line for line in console)
