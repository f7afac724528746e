"""Plans of pipelines in Python are pinned beside their file, by the same command."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from orchestration import Auto, Pipeline, PipelineError, TrainingJob
from tests.cli.conftest import Command

CHAT = """\
from orchestration import Auto, Cluster, Pipeline, TrainingJob

train = TrainingJob(
    name="train",
    image="111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1",
    hyperparameters={"epochs": 1},
    cluster=Cluster(volume_gib=200),
    strategy=Auto(
        model={"parameters": 1.1e9},
        sequence=2048,
        batch={"samples": 256},
        data={"tokens": 2.0e8},
        instances={"types": ["ml.g5.12xlarge", "ml.p4d.24xlarge"], "counts": [1]},
        tell={"micro_batch": "batch_size"},
    ),
)
pipeline = Pipeline(
    name="chat", region="us-east-1", workspace="s3://bucket/chat", stages=[train]
)
"""


def built(file: Path) -> Pipeline:
    spec = importlib.util.spec_from_file_location("chat_by_path", file)
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    pipeline = module.pipeline
    assert isinstance(pipeline, Pipeline)
    return pipeline


@pytest.fixture
def chat(tmp_path: Path) -> Path:
    path = tmp_path / "pipelines.py"
    path.write_text(CHAT)
    return path


def test_a_plan_is_written_beside_the_file_and_taken_until_the_request_changes(
    chat: Path, orchestrate: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(PipelineError, match=r"stages\.train\.strategy: is not planned yet"):
        built(chat)
    lock = chat.with_name("chat.lock.json")
    said = orchestrate("plan", chat, "--json")
    assert (said.status, lock.exists()) == (0, False)
    assert f"orchestrate plan {chat} --update" in said.err
    assert f"{lock} written" in orchestrate("plan", chat, "--update").err
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    [train] = built(chat).stages
    assert isinstance(train, TrainingJob)
    pinned = json.loads(lock.read_text())["plans"]["train"]
    assert train.cluster.instance_type == pinned["cluster"]["instance_type"]
    assert train.cluster.volume_gib == 200
    assert train.hyperparameters["batch_size"] == pinned["tells"]["micro_batch"]
    assert f"{lock} is fresh" in orchestrate("plan", chat, "--json").err
    chat.write_text(CHAT.replace('"samples": 256', '"samples": 1024'))
    with pytest.raises(PipelineError, match="what it asks for has changed since"):
        built(chat)


def test_python_searches_for_the_plans_that_the_command_shows(
    tmp_path: Path, orchestrate: Command
) -> None:
    request: dict[str, Any] = {
        "model": {"parameters": 1.1e9},
        "sequence": 2048,
        "batch": {"samples": 256},
        "data": {"tokens": 2.0e8},
        "instances": {"types": ["ml.g5.12xlarge", "ml.p4d.24xlarge"], "counts": [1]},
    }
    file = tmp_path / "request.json"
    file.write_text(json.dumps(request))
    plans = Auto(**request).plans()
    assert plans.data() == orchestrate("plan", file, "--json").document
    assert plans.chosen is not None
    assert plans.chosen.instance_type in plans._repr_html_()


def test_plans_and_code_are_pinned_in_one_file(
    chat: Path, orchestrate: Command, tmp_path: Path
) -> None:
    code = tmp_path / "src" / "train.py"
    code.parent.mkdir()
    code.touch()
    source = 'source=Source("src", entry_point="train.py"),\n    cluster='
    text = CHAT.replace("Pipeline, Tr", "Pipeline, Source, Tr").replace("cluster=", source, 1)
    chat.write_text(text)
    lock = chat.with_name("chat.lock.json")
    orchestrate("plan", chat, "--update")
    first = json.loads(lock.read_text())
    code.write_text("print(1)")
    assert orchestrate("lock", chat, "--check").status == 1
    assert orchestrate("plan", chat).err.count("is fresh") == 1
    assert orchestrate("lock", chat).status == 0
    second = json.loads(lock.read_text())
    assert second["plans"] == first["plans"]
    assert second["sources"].keys() == first["sources"].keys() == {"train.source"}
    assert second["sources"] != first["sources"]
    [train] = built(chat).stages
    assert isinstance(train, TrainingJob)
    assert train.source is not None
    assert train.source.sha256 == second["sources"]["train.source"]


def test_a_lock_file_of_a_yaml_pipeline_is_not_overwritten(
    chat: Path, orchestrate: Command
) -> None:
    chat.with_name("chat.yaml").write_text("name: chat\n")
    said = orchestrate("plan", chat, "--update")
    assert said.status == 1
    assert "chat.lock.json is the lock file of chat.yaml" in said.err


def test_a_file_without_stages_to_plan_says_so(tmp_path: Path, orchestrate: Command) -> None:
    path = tmp_path / "empty.py"
    path.write_text("")
    assert "takes a pipeline's YAML file" in orchestrate("plan", path, "--check").err
    said = orchestrate("plan", path)
    assert said.status == 1
    assert "nothing to plan" in said.err


def test_plans_are_told_by_pipeline_and_stage(tmp_path: Path, orchestrate: Command) -> None:
    path = tmp_path / "two.py"
    [head, pipeline] = CHAT.split("pipeline = ")
    second = pipeline.replace('"chat"', '"chat-b"')
    path.write_text(f"{head}a = {pipeline}b = {second}")
    said = orchestrate("plan", path, "--json")
    assert list(json.loads(said.out)) == ["chat.train", "chat-b.train"], said.err
    [only] = json.loads(orchestrate("plan", path, "--json", "--stage", "chat-b.train").out)
    assert only == "chat-b.train"
    said = orchestrate("plan", path, "--stage", "train")
    assert said.status == 2
    assert "chat.train, chat-b.train" in " ".join(said.err.split())


def test_a_file_with_dataclasses_and_postponed_annotations_is_planned(
    chat: Path, orchestrate: Command
) -> None:
    settings = """\
from __future__ import annotations
from dataclasses import dataclass
@dataclass
class Settings:
    epochs: int = 1
"""
    chat.write_text(settings + CHAT)
    said = orchestrate("plan", chat, "--json", "--stage", "train")
    assert list(json.loads(said.out)) == ["chat.train"], said.err


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ("\n\nepochs = missing\n", "pipelines.py, line 3: NameError: name 'missing' is not"),
        ("\nepochs = (\n", "pipelines.py, line 2: SyntaxError: '(' was never closed"),
        ("import absent_module\n", "pipelines.py, line 1: ModuleNotFoundError: No module named"),
    ],
)
def test_a_mistake_in_the_file_is_told_with_its_line(
    wrong: str, told: str, chat: Path, orchestrate: Command
) -> None:
    chat.write_text(wrong)
    said = orchestrate("plan", chat)
    assert said.status == 1
    assert told in said.err
    assert "Traceback" not in said.err
