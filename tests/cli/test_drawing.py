"""Stages as SVG and PNG: each below what it waits for, and user strings that stay text."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from PIL import Image, ImageChops

from orchestration.pipeline.showing.drawing import Box, svg
from orchestration.pipeline.showing.raster import png
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


def _opened(picture: bytes) -> Image.Image:
    return Image.open(io.BytesIO(picture)).convert("RGB")


def test_a_png_is_named_by_its_file_and_compared_with_it(
    orchestrate: Command, tmp_path: Path
) -> None:
    path = tmp_path / "digits.png"
    pipeline = ROOT / "dags/digits.yaml"
    assert "missing" in orchestrate("graph", pipeline, "-o", path, "--check").err
    assert orchestrate("graph", pipeline, "-o", path).err == f"{path} written\n"
    assert orchestrate("graph", pipeline, "-o", path, "--check").status == 0
    drawn = ElementTree.fromstring(orchestrate("graph", pipeline, "--format", "svg").out)
    size = tuple(2 * int(drawn.attrib[side]) for side in ("width", "height"))
    assert _opened(path.read_bytes()).size == size
    path.write_bytes(b"")
    stale = orchestrate("graph", pipeline, "-o", path, "--check")
    assert (stale.status, f"run `orchestrate graph {pipeline} -o {path}`" in stale.err) == (1, True)


@pytest.mark.usefixtures("without_fonts")
def test_the_words_of_a_png_are_drawn_by_a_font_of_its_own() -> None:
    """Each word is ink inside its own box, also on a machine without fonts."""
    blank, named, noted = (
        _opened(png(svg([Box(name=name, below=(), note=note)], "x")))
        for name, note in (("", ""), ("train", ""), ("", "training_job"))
    )
    assert blank.getpixel((30, 30)) == (238, 244, 251)
    for written, rows in ((named, (18, 48)), (noted, (54, 90))):
        box = ImageChops.difference(blank, written).getbbox()
        assert box is not None
        left, top, right, bottom = box
        assert rows[0] <= top < bottom <= rows[1]
        assert abs(left + right - blank.width) <= 4
        assert right - left > 50


@pytest.fixture
def without_fonts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Lead fontconfig and home to folders without fonts."""
    for name in ("FONTCONFIG_FILE", "FONTCONFIG_PATH", "XDG_DATA_HOME", "HOME"):
        monkeypatch.setenv(name, str(tmp_path))


def test_a_png_without_its_packages_or_a_file_is_a_mistake(
    orchestrate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = ROOT / "dags/digits.yaml"
    assert "needs a file: -o FILE" in orchestrate("graph", pipeline, "--format", "png").err
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    said = orchestrate("graph", pipeline, "-o", tmp_path / "digits.png")
    assert said.status == 1
    assert "pip install 'sagemaker-orchestration[pictures]'" in said.err
