"""Definitions that a person can read: few states, short expressions, and telling names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.definitions import measured
from orchestration import Pipeline
from orchestration.backends import stepfunctions
from orchestration.backends.stepfunctions.names import MAX_NAME
from tests.backends import definitions

PIPELINES = Path(__file__).parents[1] / "data" / "pipelines"
# Of each deployment five are for what someone else has begun, two for a folder without files.
MOST_STATES = {"digits": 96, "llm_fsx": 65}
# What a deployment tells a model's files by is one expression over each page of their listing.
# The longest one of the other names an error of AWS by its words.
LONGEST = {"digits": (142, 910), "llm_fsx": (142, 680)}


@pytest.fixture(scope="module", params=MOST_STATES)
def definition(request: pytest.FixtureRequest) -> tuple[str, Mapping[str, Any]]:
    pipeline = Pipeline.load(PIPELINES / f"{request.param}.yaml")
    return request.param, stepfunctions.render(pipeline.lower())


def test_there_is_little_to_read(definition: tuple[str, Mapping[str, Any]]) -> None:
    name, rendered = definition
    measures = measured(rendered)
    assert measures.states <= MOST_STATES[name]
    assert measures.p90 <= LONGEST[name][0]
    assert measures.longest <= LONGEST[name][1]


def test_apostrophes_stay_apostrophes(definition: tuple[str, Mapping[str, Any]]) -> None:
    assert "u0027" not in stepfunctions.dumps(definition[1])


def test_names_of_states_are_plain_and_short(definition: tuple[str, Mapping[str, Any]]) -> None:
    names = list(definitions.states(definition[1]))
    assert [name for name in names if not re.fullmatch(r"[A-Za-z0-9_-]+", name)] == []
    assert [name for name in names if len(name) > MAX_NAME] == []


def test_no_long_check_is_written_twice(definition: tuple[str, Mapping[str, Any]]) -> None:
    """What is checked is assigned once; states further on name it."""
    checks = re.findall(
        r"\(\$v := [^;]+; [^%]*?\$error\([^%]*?['\"]\)\)", json.dumps(definition[1])
    )
    # A job's outputs are taken where Step Functions waits for it, and where it was adopted.
    taken = [check for check in checks if "$states." not in check]
    assert [check for check in set(taken) if taken.count(check) > 1] == []
