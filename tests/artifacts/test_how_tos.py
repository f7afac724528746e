"""The pipelines that the how-tos show are valid, and do what their pages say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

from orchestration import Pipeline
from orchestration.graph import Call, Guarded, Workflow, all_steps
from orchestration.local import Fault

DOCS = Path(__file__).parents[2] / "docs"


def _shown(page: str, folder: Path) -> Workflow:
    """Return the pipeline of a how-to, from the file that its page shows."""
    text = (DOCS / f"{page}.md").read_text("utf-8")
    [whole] = re.findall(r"```yaml\n# articles\.yaml\n(.*?)```", text, re.DOTALL)
    path = folder / "articles.yaml"
    path.write_text(whole, "utf-8")
    return Pipeline.load(path).lower()


def _training(workflow: Workflow) -> tuple[Call, dict[str, Any]]:
    [step] = [
        step
        for step in all_steps(workflow.graph)
        if isinstance(step, Call) and step.operation.name == "CreateTrainingJob"
    ]
    return step, cast("dict[str, Any]", step.operation.request)


def test_channels_of_own_data_are_sharded_streamed_and_whole(tmp_path: Path) -> None:
    _, request = _training(_shown("own_data", tmp_path))
    channels = {channel["ChannelName"]: channel for channel in request["InputDataConfig"]}
    assert set(channels) == {"train", "holdout", "vocabulary"}
    source = channels["train"]["DataSource"]["S3DataSource"]
    assert source["S3DataDistributionType"] == "ShardedByS3Key"
    assert channels["train"]["InputMode"] == "FastFile"
    assert "InputMode" not in channels["holdout"]
    source = channels["vocabulary"]["DataSource"]["S3DataSource"]
    assert source["S3Uri"] == "s3://my-data/vocabulary/v7/"


def test_spot_jobs_wait_save_and_fall_back(tmp_path: Path) -> None:
    step, request = _training(_shown("spot", tmp_path))
    assert request["EnableManagedSpotTraining"] is True
    assert request["StoppingCondition"]["MaxWaitTimeInSeconds"] == 172800
    assert "CheckpointConfig" in request
    assert step.fallback is not None


def test_the_faults_of_the_spot_page_exist() -> None:
    text = (DOCS / "spot.md").read_text("utf-8")
    calls = re.findall(r"aws\.inject\((Fault\.(\w+)\(.*?\))\)", text)
    assert [name for _, name in calls] == ["capacity", "interruption"]
    assert Fault.capacity(instance_type="ml.p5.48xlarge") != Fault.interruption()


def test_the_file_system_of_a_run_is_mounted_and_always_released(tmp_path: Path) -> None:
    workflow = _shown("fsx", tmp_path)
    _, request = _training(workflow)
    [channel] = request["InputDataConfig"]
    assert channel["DataSource"]["FileSystemDataSource"]["FileSystemType"] == "FSxLustre"
    [guarded] = [step for step in all_steps(workflow.graph) if isinstance(step, Guarded)]
    released = [step for step in all_steps(guarded.cleanup) if isinstance(step, Call)]
    assert "DeleteFileSystem" in {step.operation.name for step in released}
