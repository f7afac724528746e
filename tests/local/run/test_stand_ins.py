"""Stand-ins are looked at before a run starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration.errors import LocalError
from orchestration.local.account.stand_ins import StandIn, StandIns
from orchestration.local.run.preparation import stand_ins
from tests.pipeline.building import job, pipeline


def test_a_missing_folder_is_named_with_its_stage(tmp_path: Path) -> None:
    made = pipeline(job("train", local={"command": ["run"], "directory": f"{tmp_path}/nothing"}))
    with pytest.raises(LocalError, match=r"stage train: there is no folder .*/nothing, named in"):
        list(stand_ins(made))


def test_a_job_is_known_by_the_tags_of_its_stage() -> None:
    account = StandIns()
    mine = StandIn("p", "train", ("run",), None)
    account.provide([mine, StandIn("other", "train", ("walk",), None)])
    tags = [{"Key": "orchestration:pipeline", "Value": "p"}]
    assert account.of({"Tags": [*tags, {"Key": "orchestration:stage", "Value": "train"}]}) is mine
    assert account.of({"Tags": tags}) is None
    assert account.of({}) is None
