"""DAGs as Airflow's other parts see them: the processor that parses, the serializer, the UI."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.amazon.aws.operators.sagemaker import SageMakerTrainingOperator
from airflow.sdk import CronTriggerTimetable
from airflow.serialization.serialized_objects import DagSerialization

from orchestration import Source
from orchestration.airflow import dag, versions
from orchestration.cli.commands.reading.python_files import built_by
from orchestration.errors import PipelineError
from orchestration.graph import Graph, ParameterSpec, ScheduleSpec, Workflow
from tests.airflow.workflows import file_system, training, workflow
from tests.backends.test_airflow import loop, whole

DAG_FILE = """
from orchestration.airflow import dag
from tests.backends.test_airflow import whole

dag(whole(), tags=["training"])
"""

IN_PYTHON = """
from orchestration import Cluster, Pipeline, Source, TrainingJob, parameter
from orchestration.airflow import dag

train = TrainingJob(
    name="train",
    image=parameter("image"),
    source=Source("src", entry_point="train.py"),
    cluster=Cluster(instance_type="ml.m5.xlarge"),
)
stages = [train]
dag(Pipeline(name="churn", parameters={"image": {}}, workspace="s3://b/churn", stages=stages))
"""


def scheduled(**defaults: Any) -> Workflow:
    return Workflow(
        name="nightly",
        graph=Graph((training("a.job"),)),
        parameters=tuple(
            ParameterSpec(name=name, default=value) for name, value in defaults.items()
        ),
        schedule=ScheduleSpec(
            cron="0 3 * * *", timezone="Europe/Berlin", parameters={"bucket": "scheduled"}
        ),
    )


def test_a_dag_survives_serialization() -> None:
    made = dag(whole())
    document = DagSerialization.to_dict(made)
    DagSerialization.validate_schema(document)
    again = DagSerialization.from_dict(document)
    assert set(again.task_ids) == set(made.task_ids)
    assert json.dumps(document)


def test_a_dag_file_names_its_pipeline_beside_it() -> None:
    made = dag("../../dags/digits.yaml")
    assert made.dag_id == "digits"
    assert {"inputs", "train", "outputs"} <= set(made.task_ids)


@pytest.mark.skipif(not versions.CALLS_ON_KILL, reason="no such place before 3.3")
def test_what_the_run_has_to_show_is_the_result_of_the_dag() -> None:
    made = dag(workflow(training("a.job")))
    assert [task.task_id for task in made.tasks if task.returns_dag_result] == ["outputs"]


def test_a_change_of_a_request_is_a_new_version() -> None:
    documents = [
        DagSerialization.to_dict(dag(workflow(training("a.job", Environment={"X": x}))))
        for x in ("1", "2")
    ]
    assert documents[0] != documents[1]


def test_tasks_stand_in_the_group_of_their_stage() -> None:
    made = dag(whole())
    groups = {task: made.get_task(task).task_group for task in ("a.each", "a.fs.create", "outputs")}
    assert {task: group and group.group_id for task, group in groups.items()} == {
        "a.each": "a",
        "a.fs.create": "a",
        "outputs": None,
    }
    assert made.get_task("a.fs.create").label == "fs.create"
    assert made.get_task("a.each").max_active_tis_per_dagrun == 3


def test_a_task_is_the_providers_operator_with_its_connection() -> None:
    made = dag(workflow(training("a.job")), aws_conn_id="other", region_name="eu-west-1")
    task = made.get_task("a")
    assert isinstance(task, SageMakerTrainingOperator)
    assert task.template_fields == SageMakerTrainingOperator.template_fields
    assert (task.aws_conn_id, task.region_name, task.retries) == ("other", "eu-west-1", 2)


def test_a_schedule_gives_the_params_their_defaults() -> None:
    made = dag(scheduled(bucket="own", prefix="p"), parameters={"prefix": "given"})
    assert isinstance(made.timetable, CronTriggerTimetable)
    assert (made.catchup, made.max_active_runs) == (False, 1)
    assert made.params.dump() == {"bucket": "scheduled", "prefix": "given"}


def test_a_scheduled_dag_has_a_value_for_every_parameter() -> None:
    with pytest.raises(
        PipelineError, match=r"can't ask for it; give it a value in `dag\(parameters=…\)`"
    ):
        dag(scheduled(bucket=None, role=None))
    assert dag(scheduled(bucket=None, role=None), schedule=None).params.dump()["role"] is None


def test_parameters_that_do_not_exist_are_refused() -> None:
    with pytest.raises(PipelineError, match="did you mean 'bucket'"):
        dag(workflow(training("a.job"), parameters={"bucket": "b"}), parameters={"buckte": "x"})


def test_the_tags_of_the_pipeline_are_tags_of_the_dag() -> None:
    tagged = replace(workflow(training("a.job")), tags={"team": "vision", "long": "x" * 200})
    assert dag(tagged).tags == {"team:vision", "long:" + "x" * 95}
    assert dag(tagged, tags=["mine"]).tags == {"mine"}


def test_arguments_go_to_the_dag_and_win() -> None:
    made = dag(
        workflow(training("a.job")), dag_id="mine", default_args={"retries": 5}, max_active_runs=4
    )
    assert (made.dag_id, made.max_active_runs) == ("mine", 4)
    task = made.get_task("a")
    assert (task.retries, task.owner) == (5, "orchestration")
    assert made.fileloc == __file__


def test_a_loop_inside_a_guard_is_mapped() -> None:
    made = dag(workflow(file_system("a.fs", Graph((loop("a.each", training("a.job")),)))))
    assert made.get_task("a.fs.delete").upstream_task_ids == {
        "a.fs.create",
        "a.fs.create_ready",
        "a.each",
        "a.results",
    }


_PARSE = """
import sys
seen = []
def audit(event, args):
    if event in ("socket.connect", "socket.getaddrinfo"):
        seen.append((event, str(args[1:])))
    if event == "open" and isinstance(args[0], str) and "/.aws/" in args[0]:
        seen.append((event, args[0]))
    if event == "import" and args[0] in ("sagemaker",):
        seen.append((event, args[0]))
sys.addaudithook(audit)
from airflow.dag_processing.dagbag import DagBag
bag = DagBag(sys.argv[1], safe_mode=True)
import boto3
assert not bag.import_errors, bag.import_errors
assert list(bag.dags) == ["hand_built"], bag.dags
assert boto3.DEFAULT_SESSION is None
assert bag.dags["hand_built"].tags == {"training"}
assert bag.dags["hand_built"].fileloc == sys.argv[1]
assert not seen, seen
"""


def test_parsing_a_dag_file_asks_nobody_for_anything(tmp_path: Path) -> None:
    path = tmp_path / "nightly.py"
    path.write_text(DAG_FILE)
    # Without a home, without credentials: nothing to be found, so nothing may be looked for.
    environment = {
        "PYTHONPATH": ".",
        "AIRFLOW_HOME": str(tmp_path),
        "HOME": str(tmp_path),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",  # by default, some versions do
    }
    done = subprocess.run(
        [sys.executable, "-c", _PARSE, str(path)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


_TEST = """
import sys
from dataclasses import replace
from pathlib import Path
from airflow.utils.db import initdb
initdb()
sys.path.append(sys.argv[1])
from nightly import made
run = made.test(run_conf={"seconds": 2})
print({ti.task_id: ti.state for ti in run.get_task_instances()})
assert run.state == "success"
"""


def test_airflows_own_test_runs_it(tmp_path: Path) -> None:
    path = tmp_path / "dags" / "nightly.py"
    path.parent.mkdir()
    path.write_text(
        "from orchestration.airflow import dag\n"
        "from orchestration.expressions import Parameter, Result\n"
        "from orchestration.graph import Wait\n"
        "from tests.airflow.workflows import workflow\n"
        "from tests.backends.test_airflow import loop\n"
        "made = dag(workflow(\n"
        "    loop('a.each', Wait(name='a.wait', seconds=Parameter('seconds'))),\n"
        "    outputs={'x': Result('a.each', 'items')}, parameters={'seconds': 1}))\n"
    )
    environment = {
        "PYTHONPATH": ".",
        "AIRFLOW_HOME": str(tmp_path),
        "HOME": str(tmp_path),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "ORCHESTRATION_TIME_SCALE": "0.001",
    }
    done = subprocess.run(
        [sys.executable, "-c", _TEST, str(path.parent)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_code_lies_beside_the_dag_file_wherever_the_processor_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dags = tmp_path / "dags"
    (dags / "src").mkdir(parents=True)
    (dags / "src" / "train.py").write_text("print(1)\n")
    (dags / "churn.py").write_text(IN_PYTHON)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    bag = DagBag(dags, safe_mode=False)
    assert bag.import_errors == {}
    digest = Source.at(dags / "src", "train.py").sha256
    assert digest is not None
    assert digest in json.dumps(DagSerialization.to_dict(bag.dags["churn"]))


def test_a_locked_pipeline_of_python_is_the_same_where_its_code_is_not(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "train.py").write_text("print(1)\n")
    path = tmp_path / "churn.py"
    path.write_text(IN_PYTHON)
    before = serialized(tmp_path)
    [built] = built_by(path)
    built.lock.write_text(json.dumps(built.content()))
    assert serialized(tmp_path) == before
    (tmp_path / "src" / "train.py").write_text("print(2)\n")
    assert serialized(tmp_path) == before
    shutil.rmtree(tmp_path / "src")
    assert serialized(tmp_path) == before


def serialized(dags: Path) -> str:
    bag = DagBag(dags, safe_mode=False)
    assert bag.import_errors == {}
    return json.dumps(DagSerialization.to_dict(bag.dags["churn"]))
