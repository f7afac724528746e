"""What a stage says of its outputs is what it is lowered to."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from orchestration.pipeline.description import AnyStage
from orchestration.refs import Ref
from orchestration.stages import Stage
from orchestration.stages.stage import SAMPLE
from tests.pipeline.building import deployment, evaluation, job, lustre

STAGES: dict[str, Any] = {
    "copied": {"kind": "data_staging", "name": "staging", "source": "s3://source/data"},
    "new file system": lustre("fs"),
    "existing file system": {
        "kind": "data_staging",
        "name": "attached",
        "destination": {"kind": "existing_fsx_lustre", "file_system_id": "fs-0123456789abcdef0"},
    },
    "job": job("train"),
    "job without checkpoints": job("train", checkpoints=None),
    "evaluation": evaluation("evaluate", "train"),
    "deployment": deployment("deploy", "evaluate"),
    "tested deployment": deployment("deploy", "evaluate", smoke_test={"request": [0]}),
}


def stage(data: Any) -> Stage:
    made: Stage = TypeAdapter[Any](AnyStage).validate_python(data)
    return made


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_is_lowered_to_the_outputs_that_it_has(name: str) -> None:
    made = stage(STAGES[name])
    assert set(made.lower(SAMPLE).outputs) == set(type(made).outputs.of(made))


@pytest.mark.parametrize("name", STAGES)
def test_a_run_shows_outputs_that_the_stage_has(name: str) -> None:
    made = stage(STAGES[name])
    assert set(type(made).outputs.shown(made)) <= set(type(made).outputs.of(made))


@pytest.mark.parametrize("name", STAGES)
def test_every_output_that_some_stages_lack_has_a_hint(name: str) -> None:
    made = stage(STAGES[name])
    outputs = type(made).outputs
    assert all(outputs.otherwise(o) for o in outputs.names if o not in outputs.of(made))


def test_outputs_are_references_to_the_stage() -> None:
    assert stage(job("train")).outputs.checkpoints == Ref("train", "checkpoints")


def test_a_file_system_that_is_deleted_is_not_shown() -> None:
    attached, fresh = stage(STAGES["existing file system"]), stage(STAGES["new file system"])
    assert type(attached).outputs.shown(attached) == ("file_system_id",)
    assert type(fresh).outputs.shown(fresh) == ()
