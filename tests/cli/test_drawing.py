"""Stages as SVG: each below what it waits for, and user strings that stay text."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

from orchestration.pipeline.showing.drawing import Box, svg
from tests.cli.conftest import ROOT, Command

SVG = "{http://www.w3.org/2000/svg}"


def test_stages_are_drawn_as_svg_below_what_they_wait_for(
    orchestrate: Command, tmp_path: Path
) -> None:
    path = tmp_path / "digits.svg"
    assert (
        orchestrate("graph", ROOT / "dags/digits.yaml", "--format", "svg", "-o", path).status == 0
    )
    assert (
        orchestrate(
            "graph", ROOT / "dags/digits.yaml", "--format", "svg", "-o", path, "--check"
        ).status
        == 0
    )
    drawn = ElementTree.parse(path).getroot()
    assert drawn.tag == f"{SVG}svg"
    tops = {str(group[2].text): float(str(group[1].get("y"))) for group in drawn.iter(f"{SVG}g")}
    assert sorted(tops, key=lambda name: tops[name]) == ["staging", "train", "evaluate", "deploy"]
    # The evaluation reads the staged data as well, which follows from the training.
    assert len([path for path in drawn.iter(f"{SVG}path") if path.get("fill") == "none"]) == 3


def test_what_users_write_stays_text_in_svg() -> None:
    boxes = [Box(name="a" * 40, below=(), note="<b>"), Box(name="b", below=("a" * 40, "gone"))]
    drawn = ElementTree.fromstring(svg(boxes, "</title>"))
    assert [text.text for text in drawn.iter(f"{SVG}text")] == [f"{'a' * 21}…", "<b>", "b", None]


def test_each_of_many_stages_after_all_before_it_is_drawn_below_the_last() -> None:
    names = [f"stage_{number}" for number in range(60)]
    boxes = [Box(name=name, below=tuple(names[:count])) for count, name in enumerate(names)]
    drawn = ElementTree.fromstring(svg(boxes, "dense"))
    assert len([path for path in drawn.iter(f"{SVG}path") if path.get("fill") == "none"]) == 59


def test_no_stages_are_an_empty_picture() -> None:
    assert not list(ElementTree.fromstring(svg([], "nothing")).iter(f"{SVG}g"))
