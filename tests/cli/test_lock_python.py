"""Code of pipelines in Python is pinned beside their file, as that of YAML files is."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline, PipelineError
from orchestration.deploy import sources
from orchestration.errors import DeployError
from orchestration.local import EmbeddedAws
from orchestration.pipeline import files
from tests.cli.conftest import Command
from tests.cli.test_locked import opened

CHURN = """\
from orchestration import Cluster, Pipeline, ProcessingCluster, ProcessingJob, Source, TrainingJob

image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1"
train = TrainingJob(
    name="train",
    image=image,
    source=Source("src", entry_point="train.py", runtime=True),
    cluster=Cluster(instance_type="ml.m5.xlarge"),
)
clean = ProcessingJob(
    name="clean",
    image=image,
    source=Source("more", entry_point="clean.py"),
    cluster=ProcessingCluster(instance_type="ml.m5.xlarge"),
)


def built(name="churn"):
    return Pipeline(
        name=name, workspace="s3://churn-workspace/churn", stages=[train], always={"clean": clean}
    )


pipeline = built()
"""


def imported(file: Path) -> Any:
    """Import a file by its path, as Airflow's DAG processor does."""
    spec = importlib.util.spec_from_file_location("by_path", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def digests(pipeline: Pipeline) -> dict[str, str | None]:
    return {
        f"{stage.name}.{path}": source.sha256
        for stage in pipeline.every_stage
        for path, source in stage.sources()
    }


@pytest.fixture
def churn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python file with a pipeline and its code beside it; it is the current folder."""
    for script in ("src/train.py", "more/clean.py"):
        (tmp_path / script).parent.mkdir()
        (tmp_path / script).write_text("print(1)\n")
    path = tmp_path / "churn_pipeline.py"
    path.write_text(CHURN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "churn_pipeline", raising=False)
    return path


@pytest.fixture
def locked(churn: Path, orchestrate: Command) -> Path:
    """The lock file of that pipeline, fresh."""
    assert orchestrate("lock", churn.name).err == "churn.lock.json written\n"
    return churn.with_name("churn.lock.json")


def changed(churn: Path) -> None:
    (churn.parent / "src" / "train.py").write_text("print(2)\n")


def test_a_file_or_an_attribute_is_locked_with_the_digests_of_its_code(
    churn: Path, locked: Path, orchestrate: Command
) -> None:
    pins = json.loads(locked.read_text())
    assert pins == {"python": churn.name, "sources": digests(imported(churn).pipeline)}
    assert list(pins["sources"]) == ["clean.source", "train.source"]
    for name in (churn.name, "churn_pipeline:pipeline"):
        assert orchestrate("lock", name, "--check").err == "churn.lock.json is fresh\n"


def test_what_is_pinned_counts_until_it_is_locked_again(
    churn: Path, locked: Path, orchestrate: Command
) -> None:
    before = digests(imported(churn).pipeline)
    changed(churn)
    assert digests(imported(churn).pipeline) == before
    for name in (churn.name, "churn_pipeline:pipeline"):
        said = orchestrate("lock", name, "--check")
        again = f"run `orchestrate lock {name}`"
        assert (said.status, f"churn.lock.json is stale; {again}" in said.err) == (1, True)
    assert orchestrate("lock", "churn_pipeline:pipeline").status == 0
    after = digests(imported(churn).pipeline)
    assert {key for key in before if before[key] != after[key]} == {"train.source"}


def test_a_pinned_pipeline_needs_no_code(churn: Path, locked: Path) -> None:
    before = imported(churn).pipeline
    for folder in ("src", "more"):
        shutil.rmtree(churn.parent / folder)
    assert imported(churn).pipeline == before
    locked.unlink()
    with pytest.raises(PipelineError, match="no lock file knows its digest") as error:
        imported(churn)
    assert [problem.path for problem in error.value.problems] == [
        "stages.train.source.directory",
        "always.clean.source.directory",
    ]


def test_no_code_is_read_while_it_is_pinned(churn: Path, locked: Path) -> None:
    scripts = {churn.parent / "src" / "train.py", churn.parent / "more" / "clean.py"}
    with opened() as read:
        imported(churn)
    assert read & scripts == set()
    locked.unlink()
    with opened() as read:
        imported(churn)
    assert read & scripts == scripts


@pytest.mark.parametrize("backend", ["airflow", "step-functions"])
def test_every_backend_has_what_is_pinned(
    churn: Path, locked: Path, orchestrate: Command, backend: str
) -> None:
    changed(churn)
    said = orchestrate("render", backend, "churn_pipeline:pipeline")
    assert json.loads(locked.read_text())["sources"]["train.source"] in said.out
    assert "train.source changed since it was locked; run `orchestrate lock churn_" in said.err
    assert "clean.source" not in said.err


def test_code_that_changed_is_a_problem_to_validate_and_not_uploaded(
    churn: Path, locked: Path, orchestrate: Command
) -> None:
    assert orchestrate("validate", "churn_pipeline:pipeline").status == 0
    changed(churn)
    said = orchestrate("validate", "churn_pipeline:pipeline")
    assert said.status == 1
    assert "train.source changed since it was locked; run `orchestrate lock" in said.err
    [folder, _] = sources.folders(imported(churn).pipeline, {})
    with pytest.raises(DeployError, match="run `orchestrate lock`"):
        folder.contents()


def test_what_is_pinned_is_deployed_from_anywhere_once_it_is_uploaded(
    account: EmbeddedAws, churn: Path, locked: Path, orchestrate: Command
) -> None:
    s3 = account.client("s3")
    s3.create_bucket(Bucket="churn-workspace")
    role = ("-p", "role=arn:aws:iam::123456789012:role/SageMaker")
    command = ("deploy", "step-functions", "churn_pipeline:pipeline", *role, "--yes")
    changed(churn)
    refused = orchestrate(*command)
    assert (refused.status, "run `orchestrate lock`" in refused.err) == (1, True)
    (churn.parent / "src" / "train.py").write_text("print(1)\n")
    assert orchestrate(*command).status == 0
    listed = s3.list_objects_v2(Bucket="churn-workspace", Prefix="churn/source/")["Contents"]
    uploaded = {item["Key"].split("/")[2] for item in listed}
    assert uploaded == {*json.loads(locked.read_text())["sources"].values()}
    for folder in ("src", "more"):
        shutil.rmtree(churn.parent / folder)
    sys.modules.pop("churn_pipeline")
    assert "nothing to change" in orchestrate(*command).err


def test_a_run_takes_code_as_it_is(churn: Path, orchestrate: Command) -> None:
    program = 'StandIn(command=("python3", "/opt/ml/processing/input/code/clean.py"))'
    text = CHURN.replace("import Cluster,", "import Cluster, StandIn,")
    text = text.replace('stages=[train], always={"clean": clean}', "stages=[clean]")
    churn.write_text(text.replace("    cluster=Pro", f"    local={program},\n    cluster=Pro"))
    assert orchestrate("lock", churn.name).status == 0
    (churn.parent / "more" / "clean.py").write_text("raise ValueError('as it is now')\n")
    said = orchestrate("run", "churn_pipeline:pipeline", "--time-scale", "0.005")
    assert "clean.source changed since it was locked; this run takes it as it is now" in said.err
    assert said.status == 1
    assert "ValueError: as it is now" in said.err + said.out


def test_locked_python_is_the_yaml_that_it_writes(
    churn: Path, locked: Path, orchestrate: Command
) -> None:
    made = imported(churn).pipeline
    other = churn.with_name("other.yaml")
    other.write_text(made.to_yaml(churn.parent))
    assert "sha256" not in other.read_text()
    assert Pipeline.load(other) == made
    assert files.lock(other)["sources"] == json.loads(locked.read_text())["sources"]
    changed(churn)
    made = imported(churn).pipeline
    other.write_text(made.to_yaml(churn.parent))
    assert Pipeline.load(other) == made


def test_a_yaml_file_of_the_same_name_does_not_take_a_lock_file_over(
    churn: Path, locked: Path, orchestrate: Command
) -> None:
    yaml = churn.with_name("churn.yaml")
    yaml.write_text(imported(churn).pipeline.to_yaml(churn.parent))
    changed(churn)
    pinned = locked.read_text()
    with pytest.raises(PipelineError) as error:
        imported(churn)
    message = (
        f"churn.lock.json: pins the pipeline of {churn.name}, and churn.yaml beside it would have "
        "the same lock file; give the two different names, or delete churn.yaml"
    )
    assert message in str(error.value)
    for command in ("lock", "validate"):
        said = orchestrate(command, "churn.yaml")
        assert (said.status, message in said.err) == (1, True), said.err
    assert locked.read_text() == pinned
    yaml.unlink()
    assert digests(imported(churn).pipeline) == json.loads(pinned)["sources"]


def test_a_lock_file_of_yaml_is_left_alone(churn: Path, orchestrate: Command) -> None:
    (churn.parent / "churn.yaml").write_text(imported(churn).pipeline.to_yaml(churn.parent))
    assert orchestrate("lock", "churn.yaml").status == 0
    locked = json.loads((churn.parent / "churn.lock.json").read_text())["sources"]
    changed(churn)
    assert digests(imported(churn).pipeline)["train.source"] != locked["train.source"]
    said = orchestrate("lock", churn.name)
    assert said.status == 1
    assert "churn.lock.json is the lock file of churn.yaml; rename either pipeline" in said.err


def test_outside_of_files_no_lock_file_counts(churn: Path, locked: Path) -> None:
    names: dict[str, Any] = {}
    changed(churn)
    exec(compile(CHURN, "<cell>", "exec"), names)
    pinned = json.loads(locked.read_text())["sources"]
    assert digests(names["pipeline"])["train.source"] != pinned["train.source"]


def test_all_pipelines_of_a_file_are_locked(churn: Path, orchestrate: Command) -> None:
    churn.write_text(f"{CHURN}\nfor number in (1, 2):\n    built(f'churn-{{number}}')\n")
    said = orchestrate("lock", churn.name)
    names = ["churn.lock.json", "churn-1.lock.json", "churn-2.lock.json"]
    assert said.err.splitlines() == [f"{name} written" for name in names]
    (churn.parent / names[0]).unlink()
    said = orchestrate("lock", churn.name, "--check")
    assert said.status == 1
    assert said.err.splitlines()[1:] == [f"{name} is fresh" for name in names[1:]]
    assert "name one MODULE:ATTRIBUTE" in " ".join(
        orchestrate("lock", churn.name, "--json").err.split()
    )


def test_a_broken_lock_file_says_how_to_mend_it(churn: Path, locked: Path) -> None:
    locked.write_text("{}")
    with pytest.raises(PipelineError, match=r"orchestrate lock churn_pipeline\.py"):
        imported(churn)


@pytest.mark.parametrize(
    ("text", "name", "told"),
    [
        ("", "none.py", "calls no Pipeline(…), so there is nothing to lock"),
        (
            "from orchestration import Pipeline\npipeline = Pipeline.parse({'name': 'p', "
            "'workspace': 's3://b/p', 'stages': {'s': {'kind': 'pause', 'duration_s': 1}}})\n",
            "none:pipeline",
            "is not built by Pipeline(…) in a Python file",
        ),
    ],
)
def test_what_has_no_lock_file_is_told(
    churn: Path,
    orchestrate: Command,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    name: str,
    told: str,
) -> None:
    monkeypatch.delitem(sys.modules, "none", raising=False)
    churn.with_name("none.py").write_text(text)
    said = orchestrate("lock", name)
    assert said.status != 0
    assert told in " ".join(said.err.split())
