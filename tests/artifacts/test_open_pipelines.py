"""Public pipelines, said with stages of the package, load and render for both backends."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestration import Pipeline
from orchestration.backends import airflow, stepfunctions

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "open_pipelines"
FILES = sorted(FOLDER.glob("*.yaml"))
GUIDE = (ROOT / "docs" / "open_pipelines.md").read_text("utf-8")


def lines(path: Path) -> int:
    stripped = (line.strip() for line in path.read_text("utf-8").splitlines())
    return sum(1 for line in stripped if line and not line.startswith("#"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_it_renders_for_both_backends(path: Path) -> None:
    workflow = Pipeline.load(path).lower()
    assert airflow.to_json(airflow.render(workflow))
    assert stepfunctions.render(workflow)["States"]


def test_the_table_has_each_with_its_lines() -> None:
    rows = re.findall(r"\[(\d+)\]\(\.\./examples/open_pipelines/(\w+\.yaml)\)", GUIDE)
    assert {name: int(told) for told, name in rows} == {path.name: lines(path) for path in FILES}
    told = re.findall(r"\[`\w+`\]\(\.\./examples/(\w+)\) \| (\d+) \|", GUIDE)
    assert len(told) == 3
    for name, number in told:
        [path] = (ROOT / "examples" / name).glob("*.yaml")
        assert int(number) == lines(path)
