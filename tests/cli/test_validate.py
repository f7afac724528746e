"""``validate``: every mistake at once, each with its path; exit statuses to rely on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchestration.cli.output import require
from orchestration.errors import OrchestrationError
from tests.cli.conftest import ROOT, STAGING, Command
from tests.patience import PATIENCE_S

WRONG = """\
name: Wrong Name
workspace: s3://bucket/wrong
stages:
  staging: {kind: data_staging, sorce: s3://bucket/data}
  train: {kind: traning_job}
"""
MLFLOW = "arn:aws:sagemaker:us-east-1:123456789012:mlflow-app/a"
MODULE = """\
from orchestration import DataStaging, Pipeline

pipeline = Pipeline(
    name="copying",
    workspace="s3://bucket/copying",
    role="arn:aws:iam::123456789012:role/r",
    stages=[DataStaging(name="staging", source="s3://bucket/data")],
)
number = 7
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "copying_pipeline", raising=False)
    (tmp_path / "copying_pipeline.py").write_text(MODULE)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "batch", "warnings"),
    [
        ("digits", "2 x ml.c5.xlarge: 2 processes, 2 replicas, global batch 2 x 32 x 1 = 64", 0),
        (
            "llm_fsx",
            "2 x ml.p5.48xlarge: 16 processes, 16 replicas, global batch 16 x 8 x 1 = 128",
            1,  # Its DAG file gives the parameters that its schedule leaves open.
        ),
    ],
)
def test_the_example_pipelines_are_valid(
    orchestrate: Command, name: str, batch: str, warnings: int
) -> None:
    said = orchestrate("validate", ROOT / f"dags/{name}.yaml")
    assert (said.status, said.err.count("scheduled runs have no value")) == (0, warnings)
    valid, counted = said.out.splitlines()
    assert valid.endswith(f"{name}.yaml: valid")
    assert counted == f"  train: {batch}"


def test_all_mistakes_come_at_once_with_their_paths(orchestrate: Command, tmp_path: Path) -> None:
    path = tmp_path / "wrong.yaml"
    path.write_text(WRONG)
    said = orchestrate("validate", path)
    assert said.status == 1
    assert said.out == ""
    assert f"{path}: 3 problems" in said.err
    for mistake in ("name: ", "stages.staging.sorce: ", "stages.train: "):
        assert mistake in said.err


def test_json_is_one_document_that_names_each_file(
    orchestrate: Command, tmp_path: Path, staging: Path
) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(WRONG)
    said = orchestrate("validate", "--json", staging, wrong)
    assert said.status == 1
    good, bad = said.document["pipelines"]
    assert good == {
        "pipeline": str(staging),
        "valid": True,
        "problems": [],
        "warnings": [],
        "facts": {},
    }
    assert not bad["valid"]
    assert {p["path"] for p in bad["problems"]} == {
        "name",
        "stages.staging.sorce",
        "stages.train",
    }


def test_a_file_that_is_missing_does_not_hide_the_others(
    orchestrate: Command, tmp_path: Path, staging: Path
) -> None:
    said = orchestrate("validate", tmp_path / "copyin.yaml", staging)
    assert said.status == 2
    assert "No such file or directory; did you mean 'copying.yaml'?" in said.err
    assert said.out == f"{staging}: valid\n"


def test_what_is_no_yaml_is_wrong_where_it_breaks(orchestrate: Command, tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text("name: [")
    said = orchestrate("validate", path)
    assert said.status == 1
    assert "line 1, column 8" in said.err


def test_code_that_changed_since_it_was_locked_is_a_problem(
    orchestrate: Command, training: Path
) -> None:
    assert orchestrate("lock", training).status == 0
    assert orchestrate("validate", training).status == 0
    (training.parent / "code/train.py").write_text("print('changed')\n")
    said = orchestrate("validate", training)
    assert said.status == 1
    assert "train.source changed since it was locked; run `orchestrate lock" in said.err


def test_a_lock_file_is_enough_where_the_code_is_not(orchestrate: Command, training: Path) -> None:
    assert orchestrate("lock", training).status == 0
    (training.parent / "code").rename(training.parent / "elsewhere")
    assert orchestrate("validate", training).status == 0


def test_a_pipeline_can_be_an_attribute_of_a_module(orchestrate: Command, modules: Path) -> None:
    said = orchestrate("validate", "copying_pipeline:pipeline")
    assert (said.status, said.out) == (0, "copying_pipeline:pipeline: valid\n")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("copying_pipelines:pipeline", "there is no module 'copying_pipelines'"),
        ("copying_pipeline:pipelin", "has no 'pipelin'; did you mean 'pipeline'?"),
        ("copying_pipeline:number", "is a int, not a Pipeline"),
        ("copying_pipeline", "is neither a YAML file nor module:attribute"),
        (
            "./copying_pipeline.py:pipeline",
            "is a Python file; name the pipeline in it as MODULE:ATTRIBUTE, here "
            "copying_pipeline:pipeline",
        ),
    ],
)
def test_a_pipeline_that_is_not_there_is_a_usage_error(
    orchestrate: Command, modules: Path, name: str, message: str
) -> None:
    said = orchestrate("validate", name)
    assert said.status == 2
    assert message in said.err


@pytest.mark.parametrize("command", ["graph", "run"])
def test_a_python_file_is_answered_with_the_name_of_its_pipeline(
    orchestrate: Command, modules: Path, command: str
) -> None:
    said = orchestrate(command, "copying_pipeline.py")
    assert said.status == 2
    assert "as MODULE:ATTRIBUTE, here copying_pipeline:pipeline" in said.err


def test_mistakes_in_a_module_are_told_without_a_traceback(
    orchestrate: Command, modules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "bad_pipeline", raising=False)
    (modules / "bad_pipeline.py").write_text(MODULE.replace("s3://bucket/data", "bucket/data"))
    said = orchestrate("validate", "bad_pipeline:pipeline")
    assert said.status == 1
    assert "stages.staging.source: expected an S3 URI, got 'bucket/data'" in said.err


def test_only_the_backend_that_is_asked_for_is_tried(orchestrate: Command, tmp_path: Path) -> None:
    path = tmp_path / "inputs.yaml"
    path.write_text(STAGING.replace("  staging:", "  inputs:"))
    assert orchestrate("validate", path, "--on", "step-functions").status == 0
    said = orchestrate("validate", path)
    assert said.status == 1
    assert "airflow: a task of every DAG has this name" in said.err


SCHEDULED = STAGING + "schedule: {cron: 0 6 * * *}\n"


@pytest.mark.parametrize("options", [(), ("--on", "step-functions")])
def test_a_parameter_without_a_value_in_scheduled_runs_is_a_warning(
    orchestrate: Command, tmp_path: Path, options: tuple[str, ...]
) -> None:
    path = tmp_path / "scheduled.yaml"
    path.write_text(SCHEDULED)
    said = orchestrate("validate", path, *options)
    assert said.status == 0
    assert "schedule.parameters: scheduled runs have no value for bucket" in said.err
    assert "dag(…, parameters=…)" in said.err


def test_on_airflow_a_parameter_without_a_value_in_scheduled_runs_is_a_problem(
    orchestrate: Command, tmp_path: Path
) -> None:
    path = tmp_path / "scheduled.yaml"
    path.write_text(SCHEDULED)
    said = orchestrate("validate", path, "--on", "airflow", "-p", "data=s3://d/d")
    assert said.status == 1
    assert "1 problem\n  parameters.bucket: scheduled runs have no value for it" in said.err
    assert "warning" not in said.err


def test_values_that_the_dag_file_gives_can_be_named(orchestrate: Command) -> None:
    names = ("role", "bucket", "data", "training_image", "subnet", "security_group")
    values = [part for name in names for part in ("-p", f"{name}=x")]
    path = ROOT / "dags/llm_fsx.yaml"
    said = orchestrate("validate", path, "--on", "airflow", *values)
    assert (said.status, said.err) == (0, "")
    said = orchestrate("validate", path, "--on", "airflow", "-p", "instance_count=two")
    assert said.status == 2
    assert "instance_count: expected a number, got 'two'" in said.err


def test_a_dag_file_is_run_as_airflow_runs_it(orchestrate: Command, tmp_path: Path) -> None:
    said = orchestrate("validate", ROOT / "dags/digits.py", ROOT / "dags/llm_fsx.py")
    assert (said.status, said.err) == (0, "")
    assert said.out.count(": valid\n") == 2
    (tmp_path / "scheduled.yaml").write_text(SCHEDULED)
    imported = "from orchestration.airflow import dag\n"
    files = {
        "without.py": imported + 'made = dag("scheduled.yaml", parameters={"data": "s3://d/d"})\n',
        "broken.py": imported + "made = dag(1 / 0)\n",
        "empty.py": imported,
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    said = orchestrate("validate", *(tmp_path / name for name in (*files, "absent.py")))
    assert said.status == 2
    for problem in (
        "parameters.bucket: a scheduled run can't ask for it",
        "ZeroDivisionError: division by zero",
        "expected a DAG file, got one without a DAG; a pipeline in Python is validated as "
        "MODULE:ATTRIBUTE",
        "No such file",
    ):
        assert problem in said.err


def test_a_dag_needs_no_name_and_may_import_what_lies_beside_it(
    orchestrate: Command, staging: Path
) -> None:
    staging.with_name("beside_the_dag.py").write_text(f"NAME = {staging.name!r}\n")
    path = staging.with_name("dag_file.py")
    path.write_text(
        "from beside_the_dag import NAME\nfrom orchestration.airflow import dag\n\ndag(NAME)\n"
    )
    assert orchestrate("lock", staging).status == 0
    said = orchestrate("validate", path)
    assert (said.status, said.out, said.err) == (0, f"{path}: valid\n", "")
    path.write_text(path.read_text() + "\nmissing\n")
    said = orchestrate("validate", path)
    assert said.status == 1
    assert "dag_file.py, line 6: NameError: name 'missing' is not defined" in said.err


@pytest.mark.slow
def test_only_the_answer_is_on_standard_output(staging: Path) -> None:
    path = staging.with_name("talking.py")
    path.write_text(
        "from orchestration.airflow import dag\n\nprint('a word of the file')\n"
        f"dag({staging.name!r})\n"
    )
    said = subprocess.run(
        [sys.executable, "-m", "orchestration.cli", "validate", "--json", path],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert json.loads(said.stdout)["valid"] is True
    assert "a word of the file" in said.stderr
    assert "copying.lock.json is missing" in said.stderr


def test_what_a_module_prints_is_no_part_of_the_answer(modules: Path, orchestrate: Command) -> None:
    module = modules / "copying_pipeline.py"
    module.write_text(f"print('a word of the module')\n{MODULE}")
    said = orchestrate("validate", "--json", "copying_pipeline:pipeline")
    assert json.loads(said.out)["valid"] is True
    assert "a word of the module" in said.err


def test_a_scheduled_pipeline_whose_parameters_have_values_has_no_warning(
    orchestrate: Command, tmp_path: Path
) -> None:
    path = tmp_path / "scheduled.yaml"
    values = "{bucket: workspace, data: s3://source/data}"
    path.write_text(STAGING + f"schedule: {{cron: 0 6 * * *, parameters: {values}}}\n")
    said = orchestrate("validate", path, "--on", "airflow")
    assert (said.status, said.err) == (0, "")


def test_a_missing_extra_is_named_where_even_its_package_is_missing() -> None:
    modules = {"surely_not_installed.sdk": "airflow", "json": "local"}
    with pytest.raises(OrchestrationError, match=r"'sagemaker-orchestration\[airflow\]'"):
        require(modules, what="running pipelines on this machine")


def test_fields_that_step_functions_may_not_know_are_a_warning(
    orchestrate: Command, tmp_path: Path
) -> None:
    text = (ROOT / "dags/digits.yaml").read_text()
    file = tmp_path / "digits.yaml"
    file.write_text(text.replace("../examples", str(ROOT / "examples")) + "integration: sdk\n")
    assert orchestrate("validate", file, "--on", "step-functions").err == ""
    train = "    kind: training_job\n"
    recent = "    extra_request: {MlflowConfig: {MlflowResourceArn: '" + MLFLOW + "'}}\n"
    assert train in text
    file.write_text(file.read_text().replace(train, train + recent))
    said = orchestrate("validate", file, "--on", "step-functions")
    assert said.status == 0
    assert "train.MlflowConfig: CreateTrainingJob has this field since 2025-12-03" in said.err
    assert orchestrate("validate", file, "--on", "airflow").err == ""
    assert "warning: stages.train.MlflowConfig" in orchestrate("render", "step-functions", file).err
