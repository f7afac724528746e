"""The tutorial, by its own commands: from an empty folder to a model that answers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guides import TUTORIAL
from tests.tutorial import followed

COMMANDS = 7


@pytest.mark.toolkit
@pytest.mark.slow
def test_the_tutorial_ends_with_a_model_of_ones_own(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    scripts = Path(sys.executable).parent
    performed = list(followed(tmp_path, scripts, run_options=" --json"))
    assert len(performed) == COMMANDS
    assert "trees: 50" in (tmp_path / "tumours" / "tumours.yaml").read_text("utf-8")
    [ran] = [each for each in performed if each.command == "orchestrate run"]
    report = json.loads(ran.output)
    assert {stage["state"] for stage in report["stages"]} == {"succeeded"}
    assert report["outputs"]["evaluate"]["best_metric"] >= 0.95
    # The endpoint serves this model: fifty trees that are grown to their ends answer in fiftieths.
    [benign] = report["outputs"]["deploy"]["answer"]
    assert 0 < benign < 1
    assert (benign * 50) % 1 == pytest.approx(0, abs=1e-9)
    # For whoever reads the report; how long it takes is no claim of the test.
    record_property("commands", len(performed))
    record_property("minutes", round(sum(each.seconds for each in performed) / 60, 1))


def test_the_tutorial_says_how_many_commands_it_has() -> None:
    assert "seven commands" in TUTORIAL.read_text("utf-8")
