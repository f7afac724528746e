"""DAG files whose specification is in the lock file beside the YAML."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from airflow.serialization.serialized_objects import DagSerialization

from orchestration.airflow import dag
from orchestration.backends import locks
from orchestration.backends.airflow import DagSpec, locking, render
from orchestration.backends.airflow.spec import from_document, to_document
from orchestration.backends.layout import laid_out
from orchestration.backends.locking import with_renderings
from orchestration.errors import PipelineError
from orchestration.pipeline import Pipeline, files

ROOT = Path(__file__).resolve().parents[2]
VALUES = {
    "digits": {},
    "llm_fsx": {
        "role": "arn:aws:iam::111122223333:role/SageMakerExecution",
        "bucket": "amzn-s3-demo-bucket",
        "data": "s3://amzn-s3-demo-source-bucket/corpus",
        "training_image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1",
        "subnet": "subnet-0123456789abcdef0",
        "security_group": "sg-0123456789abcdef0",
    },
}


def write(path: Path) -> None:
    content = with_renderings(path, files.lock(path))[0]
    locks.lock_path(path).write_text(json.dumps(content, indent=2))


def rewrite(path: Path, content: dict[str, Any]) -> None:
    """Write a lock file with the right digest, whatever is in it."""
    content["airflow"]["digest"] = locks.covering(content, "airflow")
    locks.lock_path(path).write_text(json.dumps(content))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A pipeline of one training job, locked."""
    description = {
        "name": "small",
        "workspace": "s3://bucket",
        "role": "arn:aws:iam::111122223333:role/train",
        "stages": {
            "train": {
                "kind": "training_job",
                "image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1",
                "cluster": {"instance_type": "ml.m5.xlarge", "instance_count": 1},
                "hyperparameters": {"text": "{{ params.role }}", "$Call": "a", "$Run": "b"},
            }
        },
    }
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(description))
    write(path)
    return path


@pytest.mark.parametrize("name", VALUES)
def test_a_dag_of_the_lock_file_and_one_of_the_yaml_are_the_same(name: str) -> None:
    path = ROOT / f"dags/{name}.yaml"
    locked = dag(path, parameters=VALUES[name])
    rendered = dag(Pipeline.load(path), parameters=VALUES[name])
    assert isinstance(locking.specification(path), DagSpec)
    assert DagSerialization.to_dict(locked) == DagSerialization.to_dict(rendered)


def test_the_lock_file_holds_the_whole_specification(path: Path) -> None:
    assert locking.specification(path) == from_document(
        json.loads(json.dumps(to_document(render(Pipeline.load(path).lower()))))
    )


PARSE = """
import sys
import airflow.sdk
import airflow.providers.amazon.aws.operators.sagemaker
import airflow.serialization.serialized_objects
before = set(sys.modules)
read = []

def audit(event, arguments):
    if event == "open" and str(arguments[0]).endswith((".yaml", ".json")):
        read.append(str(arguments[0]))

sys.addaudithook(audit)
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(dag_folder=FILE, collect_dags=False)
bag.process_file(FILE, only_if_updated=False)
assert not bag.import_errors, bag.import_errors
[made] = bag.dags.values()
airflow.serialization.serialized_objects.DagSerialization.to_dict(made)
import json
print(json.dumps([made.dag_id, sorted(set(sys.modules) - before), read]))
"""


@pytest.mark.slow
def test_a_dag_file_loads_no_model_and_no_yaml(path: Path) -> None:
    file = path.with_suffix(".py")
    file.write_text("from orchestration.airflow import dag\n\ndag('small.yaml')\n")
    program = PARSE.replace("FILE", repr(str(file)))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    dag_id, modules, read = json.loads(done.stdout.splitlines()[-1])
    assert dag_id == "small"
    assert [Path(name).name for name in read if Path(name).parent == path.parent] == [
        "small.lock.json",
        "small.yaml",  # its bytes, for the digest
    ]
    heavy = (
        "botocore.model",
        "orchestration.pipeline",
        "orchestration.stages",
        "yaml",
        "pydantic",
        "regex",
    )
    assert [m for m in modules if m.startswith(heavy)] == []
    assert "orchestration.backends.airflow.rendering" not in modules
    assert "orchestration.checks" not in modules


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda c: c["airflow"]["specification"]["tasks"]["train"].update(stage="b"), "edited"),
        (lambda c: c["sources"].update({"train.source": "0" * 64}), "edited"),
        (lambda c: c["airflow"].update(version="0.0.1"), "written by version 0.0.1"),
        (lambda c: c["airflow"]["files"].update({"small.yaml": "0" * 64}), "small.yaml changed"),
        (lambda c: c["airflow"]["files"].clear(), "does not know small.yaml"),
        (lambda c: c["airflow"]["modules"].update({"json": "0" * 64}), "code of json changed"),
        (lambda c: c["airflow"]["modules"].update({"no.such": ""}), "code of no.such changed"),
        (lambda c: c.pop("airflow"), "holds no rendered DAG"),
        (lambda c: c["airflow"].pop("specification"), "holds no rendered DAG"),
    ],
)
def test_what_changed_is_rendered_anew_with_a_warning(
    path: Path, caplog: pytest.LogCaptureFixture, change: Any, reason: str
) -> None:
    content = json.loads(locks.lock_path(path).read_text())
    change(content)
    locks.lock_path(path).write_text(json.dumps(content))
    with caplog.at_level(logging.WARNING):
        made = dag(path)
    assert [task.task_id for task in made.tasks] == ["inputs", "train", "outputs", "leftovers"]
    [warning] = [r.getMessage() for r in caplog.records if "rendered" in r.getMessage()]
    assert reason in warning
    assert f"orchestrate lock {path}" in warning


def test_a_change_of_the_yaml_counts_at_once(path: Path) -> None:
    path.write_text(path.read_text().replace("name: small", "name: smaller"))
    assert dag(path).dag_id == "smaller"
    assert isinstance(locking.specification(path), locking.Stale)


def test_without_a_lock_file_the_yaml_counts(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    locks.lock_path(path).unlink()
    with caplog.at_level(logging.WARNING):
        assert dag(path).dag_id == "small"
    assert "small.lock.json is missing" in caplog.text


def test_a_fresh_lock_file_says_nothing(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        dag(path)
    assert "lock" not in caplog.text


def task(content: dict[str, Any]) -> dict[str, Any]:
    named: dict[str, Any] = content["airflow"]["specification"]["tasks"]["train"]
    return named


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (lambda t: t.update(operator="BashOperator"), "unknown operator 'BashOperator'"),
        (lambda t: t.update(operator="__class__"), "unknown operator '__class__'"),
        (lambda t: t.update(pool="other"), "unknown field 'pool'"),
        (lambda t: t.update(trigger_rule="always"), "unknown trigger rule 'always'"),
        (lambda t: t.update(upstream=["other"]), "unknown task 'other'"),
        (lambda t: t.update(mapped_over="other"), "unknown task 'other'"),
        (lambda t: t.update(loop="other"), "unknown loop 'other'"),
        (lambda t: t.pop("stage"), "missing field 'stage'"),
        (lambda t: t["arguments"].update(on_success_callback="a"), "unknown argument"),
        (lambda t: t["arguments"].update(steps=[{"$Popen": {}}]), "unknown step"),
        (lambda t: t["arguments"].update(steps=[{"$": []}]), "unknown step"),
        (lambda t: t["arguments"].update(steps=[{"$Wait": ["a"]}]), "unknown step"),
        (lambda t: t["arguments"].update(returns={"$Eval": "1"}), "unknown step or expression"),
        (
            lambda t: t["arguments"].update(returns={"a": [{"$literal": {"b": {"$Eval": ""}}}]}),
            "unknown step or expression",
        ),
        (lambda t: t.update(arguments=[]), "expected a specification"),
    ],
)
def test_a_specification_names_only_what_pipelines_are_rendered_to(
    path: Path, attack: Any, message: str
) -> None:
    content = json.loads(locks.lock_path(path).read_text())
    attack(task(content))
    rewrite(path, content)
    with pytest.raises(PipelineError, match=r"small\.lock\.json") as refused:
        dag(path)
    assert message in str(refused.value)


def test_a_model_file_may_be_missing_and_may_not_change(path: Path) -> None:
    (path.parent / "config.json").write_text("{}")
    content = json.loads(locks.lock_path(path).read_text())
    content["airflow"]["files"]["config.json"] = locks.digest(path.parent / "config.json")
    rewrite(path, content)
    assert isinstance(locking.specification(path), DagSpec)
    (path.parent / "config.json").write_text("{ }")
    assert locking.specification(path) == locking.Stale(
        "small.lock.json is stale: config.json changed"
    )
    (path.parent / "config.json").unlink()
    assert isinstance(locking.specification(path), DagSpec)


def test_code_of_stages_is_digested_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "own_stages"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "helper.py").write_text("SIZE = 1")
    (tmp_path / "own_stage.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    before = locks._code("own_stages"), locks._code("own_stage")
    assert all(before)
    (package / "helper.py").write_text("SIZE = 2")
    assert locks._code("own_stages") != before[0]
    assert locks._code("own_stage") == before[1]


@pytest.mark.parametrize("name", VALUES)
def test_the_lock_files_in_the_repository_are_fresh(name: str) -> None:
    path = ROOT / f"dags/{name}.yaml"
    content = with_renderings(path, files.lock(path))[0]
    assert locks.lock_path(path).read_text() == laid_out(content)
