"""The pictures of the documentation are small, stand on a page, and show this version."""

from __future__ import annotations

import io
import re
import tomllib
from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageStat

from orchestration import Pipeline
from orchestration.pipeline.showing import drawing, raster

ROOT = Path(__file__).parents[2]
PICTURES = sorted((ROOT / "docs" / "images").iterdir())
OF_A_RUN = [path for path in PICTURES if path.name != "stages.png"]


def test_all_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in PICTURES}
    assert {name: size for name, size in sizes.items() if size > 150_000} == {}
    assert sum(sizes.values()) < 1_000_000


def test_each_stands_on_a_page() -> None:
    texts = [(ROOT / "README.md"), *(ROOT / "docs").glob("*.md")]
    pages = "".join(path.read_text("utf-8") for path in texts)
    shown = set(re.findall(r"\]\((?:docs/)?images/(\w+\.png)\)", pages))
    assert shown == {path.name for path in PICTURES}


@pytest.mark.parametrize("path", OF_A_RUN, ids=lambda path: path.stem)
def test_each_is_of_this_version_on_the_airflow_that_is_pinned(path: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pins = (ROOT / "constraints.txt").read_text("utf-8")
    [airflow] = re.findall(r"^apache-airflow==(.*)$", pins, re.MULTILINE)
    with Image.open(path) as picture:
        said = picture.info["Software"]
        assert len(picture.getcolors() or ()) > 8
    assert said == f"orchestration {project['version']}, Airflow {airflow}", "run `make pictures`"


def test_the_stages_are_those_of_the_pipeline() -> None:
    pipeline = Pipeline.load(ROOT / "dags/digits.yaml")
    kinds = {stage.name: getattr(stage, "kind", "") for stage in pipeline.every_stage}
    svg = drawing.svg(drawing.boxes(pipeline.every_stage, kinds), pipeline.name)
    drawn = Image.open(io.BytesIO(raster.png(svg))).convert("RGB")
    kept = Image.open(ROOT / "docs/images/stages.png").convert("RGB")
    assert kept.size == drawn.size
    # Another processor may round another way.
    assert max(ImageStat.Stat(ImageChops.difference(kept, drawn)).mean) < 0.5
