"""``deploy`` and ``upload`` on the embedded AWS, found as the real one is: by the environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestration.cli.commands.deployment import new_session
from orchestration.local import EmbeddedAws
from tests.cli.conftest import Command

BUCKET = "deployed-workspace"
PARAMETERS = ("-p", f"bucket={BUCKET}", "-p", "role=arn:aws:iam::123456789012:role/SageMaker")


@pytest.fixture
def account(aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch) -> EmbeddedAws:
    for name, value in aws.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    s3 = aws.client("s3")
    if BUCKET not in {bucket["Name"] for bucket in s3.list_buckets()["Buckets"]}:
        s3.create_bucket(Bucket=BUCKET)
    return aws


def test_deploying_twice_changes_nothing_the_second_time(
    account: EmbeddedAws, orchestrate: Command, training: Path
) -> None:
    command = ("deploy", "step-functions", training, *PARAMETERS)
    planned = orchestrate(*command, "--dry-run")
    assert planned.status == 0
    assert "would create state machine training" in planned.out
    assert "training" not in account.state()["stepfunctions"]
    done = orchestrate(*command, "--json", "--yes").document
    assert "create state machine training" in done["changes"]
    assert done["state_machine_arn"].endswith(":stateMachine:training")
    assert "training" in account.state()["stepfunctions"]
    again = orchestrate(*command)
    assert again.err == "account 123456789012, region us-east-1\nnothing to change\n"
    assert again.out == f"{done['state_machine_arn']}\n"


def test_runs_are_started_listed_and_stopped(
    account: EmbeddedAws, orchestrate: Command, training: Path
) -> None:
    training.write_text(training.read_text().replace("name: training", "name: operated"))
    early = orchestrate("start", training, *PARAMETERS)
    assert (early.status, "is not deployed to 123456789012" in early.err) == (1, True)
    assert orchestrate("deploy", "step-functions", training, *PARAMETERS, "--yes").status == 0
    assert orchestrate("runs", "operated").err == "no runs of operated\n"
    wrong = orchestrate("start", training, "-p", "bucket=workspace")
    assert (wrong.status, "role" in wrong.err) == (2, True)
    arn = orchestrate("start", training, *PARAMETERS, "--run-id", "one").out.strip()
    stopped = orchestrate("stop", arn, "--json").document
    assert stopped["execution_arn"] == arn
    [run] = orchestrate("runs", training, "--json").document["runs"]
    assert (run["execution_arn"], run["ended"] is None) == (arn, False)
    table = orchestrate("runs", "operated").out
    assert f"operated:{arn.rpartition(':')[2]}" in table


def test_a_deployment_is_destroyed_by_its_name(
    account: EmbeddedAws, orchestrate: Command, training: Path
) -> None:
    text = training.read_text().replace("name: training", "name: leaving")
    training.write_text(f"{text}step_functions: {{logging: {{level: FATAL}}}}\n")
    assert orchestrate("deploy", "step-functions", training, *PARAMETERS, "--yes").status == 0
    training.unlink()
    command = ("destroy", "step-functions", "leaving")
    shown = orchestrate(*command, "--dry-run")
    assert "would delete state machine leaving\n" in shown.out
    group = "/aws/vendedlogs/states/leaving"
    assert f"log group {group} stays; --logs deletes it, too" in shown.err
    refused = orchestrate(*command)
    assert (refused.status, "pass --yes" in refused.err) == (2, True)
    assert "leaving" in account.state()["stepfunctions"]
    gone = orchestrate(*command, "--yes", "--json").document
    assert "delete role leaving-us-east-1-states" in gone["changes"]
    assert gone["log_group"] == group
    assert "leaving" not in account.state()["stepfunctions"]
    last = orchestrate(*command, "--logs", "--yes", "--json").document
    assert (last["changes"], last["log_group"]) == ([f"delete log group {group}"], None)
    assert "nothing of pipeline leaving is deployed here" in orchestrate(*command).err


def test_changes_are_shown_by_state_and_statement_and_need_a_yes(
    account: EmbeddedAws, orchestrate: Command, training: Path
) -> None:
    text = training.read_text().replace("name: training", "name: asked")
    training.write_text(text)
    command = ("deploy", "step-functions", training, *PARAMETERS)
    refused = orchestrate(*command)
    assert refused.status == 2
    assert "pass --yes" in refused.err
    assert "asked" not in account.state()["stepfunctions"]
    made = orchestrate(*command, "--yes")
    assert "      + TrainingJobs: sagemaker:AddTags, sagemaker:CreateTrainingJob" in made.out
    assert "did create state machine asked" in made.out
    training.write_text(text.replace("ml.c5.xlarge", "ml.c5.2xlarge") + "description: Larger.\n")
    shown = orchestrate(*command, "--dry-run")
    assert "would update state machine asked: definition\n    definition\n" in shown.out
    assert '      ~ Comment: "' in shown.out
    assert 'InstanceType: "ml.c5.xlarge" -> "ml.c5.2xlarge"' in shown.out
    [change] = orchestrate(*command, "--yes", "--json").document["differences"]
    assert (change["change"], change["resource"]) == ("update", "state machine")
    assert "definition" in change["difference"]


def test_a_deployment_is_taken_back_after_a_yes(
    account: EmbeddedAws, orchestrate: Command, training: Path
) -> None:
    text = training.read_text().replace("name: training", "name: regretted")
    training.write_text(text)
    command = ("deploy", "step-functions", training, *PARAMETERS, "--yes")
    assert orchestrate(*command).status == 0
    early = orchestrate("rollback", training)
    assert (early.status, "version 1 is the oldest of regretted" in early.err) == (1, True)
    training.write_text(text.replace("ml.c5.xlarge", "ml.c5.2xlarge"))
    assert orchestrate(*command).status == 0
    training.unlink()
    shown = orchestrate("rollback", "regretted", "--dry-run")
    assert shown.status == 0
    assert "account 123456789012, region us-east-1\nversion 1 of 20" in shown.err
    assert "would update state machine regretted: definition\n" in shown.out
    assert 'InstanceType: "ml.c5.2xlarge" -> "ml.c5.xlarge"' in shown.out
    refused = orchestrate("rollback", "regretted")
    assert (refused.status, "pass --yes" in refused.err) == (2, True)
    assert "ml.c5.2xlarge" in account.state()["stepfunctions"]["regretted"]["Definition"]
    done = orchestrate("rollback", "regretted", "--yes", "--json").document
    assert done["version"] == 1
    assert done["changes"] == ["update state machine regretted: definition"]
    assert "ml.c5.2xlarge" not in account.state()["stepfunctions"]["regretted"]["Definition"]
    again = orchestrate("rollback", "regretted", "--to", "1")
    assert (again.status, "nothing to change" in again.err) == (0, True)


def test_a_version_is_tried_and_promoted(
    account: EmbeddedAws, orchestrate: Command, training: Path
) -> None:
    text = training.read_text().replace("name: training", "name: tried")
    canary = "step_functions: {alias: {name: live, canary: {percent: 10, minutes: 30}}}\n"
    command = ("deploy", "step-functions", training, *PARAMETERS, "--yes")
    for instance in ("ml.c5.xlarge", "ml.c5.2xlarge"):
        training.write_text(text.replace("ml.c5.xlarge", instance) + canary)
        assert orchestrate(*command).status == 0
    shown = orchestrate("promote", "tried", "--dry-run")
    assert shown.status == 0
    assert "would update alias live: weights\n" in shown.out
    assert "- weights.version 1: 90\n" in shown.out
    assert "warning: its trial takes 30 minutes" in shown.err
    early = orchestrate("promote", training, "--yes")
    assert (early.status, "version 2 can't get all runs yet" in early.err) == (1, True)
    more = orchestrate("promote", "tried", "--percent", "50", "--force", "--yes", "--json").document
    assert (more["version"], more["percent"]) == (2, 50)
    fewer = orchestrate("promote", "tried", "--percent", "20")
    assert (fewer.status, "gets 50 of 100 runs already" in fewer.err) == (1, True)
    unasked = orchestrate("promote", "tried", "--force")
    assert (unasked.status, "pass --yes" in unasked.err) == (2, True)
    done = orchestrate("promote", "tried", "--force", "--yes", "--json").document
    assert (done["version"], done["changes"]) == (2, ["update alias live: weights"])
    again = orchestrate("promote", "tried")
    assert (again.status, "nothing to change" in again.err) == (0, True)


def test_a_machine_without_an_owner_is_adopted_on_request_only(
    account: EmbeddedAws, orchestrate: Command, training: Path
) -> None:
    training.write_text(training.read_text().replace("name: training", "name: adopted"))
    states = account.client("stepfunctions")
    machine = {"StartAt": "A", "States": {"A": {"Type": "Succeed"}}}
    role = "arn:aws:iam::123456789012:role/somebody"
    arn = states.create_state_machine(name="adopted", definition=json.dumps(machine), roleArn=role)[
        "stateMachineArn"
    ]
    command = ("deploy", "step-functions", training, *PARAMETERS, "--yes")
    refused = orchestrate(*command)
    assert (refused.status, "deploy with --adopt to take it over" in refused.err) == (1, True)
    shown = orchestrate(*command, "--adopt", "--dry-run").out
    assert "- state A (Succeed)" in shown
    assert orchestrate(*command, "--adopt").status == 0
    owner = {"key": "orchestration:pipeline", "value": "adopted"}
    assert owner in states.list_tags_for_resource(resourceArn=arn)["tags"]
    states.tag_resource(resourceArn=arn, tags=[{**owner, "value": "another"}])
    refused = orchestrate(*command, "--adopt")
    assert (refused.status, "that of another" in refused.err) == (1, True)


def test_the_needs_of_a_role_that_the_pipeline_names_are_shown(
    account: EmbeddedAws, orchestrate: Command, training: Path
) -> None:
    arn = "arn:aws:iam::123456789012:role/absent"
    training.write_text(training.read_text() + f"step_functions: {{role: {arn}}}\n")
    said = orchestrate("deploy", "step-functions", training, *PARAMETERS, "--dry-run")
    assert said.status == 0
    assert f"role {arn} needs:" in said.err
    assert '"sagemaker:CreateTrainingJob"' in said.out
    assert f"warning: role {arn} does not exist" in said.err
    refused = orchestrate("deploy", "step-functions", training, *PARAMETERS, "--yes")
    assert (refused.status, "does not exist" in refused.err) == (1, True)


def test_a_dag_goes_to_its_folder_and_its_code_into_the_workspace(
    account: EmbeddedAws, orchestrate: Command, training: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "dags"
    folder.mkdir()
    (training.parent / "code" / "train.py").write_text("print('deployed to Airflow')\n")
    command = ("deploy", "airflow", training, *PARAMETERS, "--to", folder)
    stale = orchestrate(*command)
    assert (stale.status, "run `orchestrate lock" in stale.err) == (1, True)
    orchestrate("lock", training)
    planned = orchestrate(*command, "--dry-run")
    assert "would create training/training.py\n" in planned.out
    assert list(folder.iterdir()) == []
    assert orchestrate(*command).status == 2
    policy = tmp_path / "policy.json"
    done = orchestrate(*command, "--yes", "--json", "--policy", policy).document
    assert done["changes"][-1] == "create training/training.py"
    [code] = done["uploads"]
    assert code.startswith(f"s3://{BUCKET}/training/source/")
    listed = account.client("s3").list_objects_v2(Bucket=BUCKET, Prefix="training/source/")
    assert [item["Key"] for item in listed["Contents"]]
    actions = {a for s in json.loads(policy.read_text())["Statement"] for a in s["Action"]}
    assert {"sagemaker:CreateTrainingJob", "sagemaker:StopTrainingJob"} <= actions
    assert "nothing to change" in orchestrate(*command).err
    gone = orchestrate("destroy", "airflow", "training", "--to", folder, "--yes", "--json").document
    assert "delete training/training.yaml" in gone["changes"]
    assert list(folder.iterdir()) == []


def test_a_dag_goes_to_s3(account: EmbeddedAws, orchestrate: Command, training: Path) -> None:
    orchestrate("lock", training)
    place = f"s3://{BUCKET}/airflow/dags"
    command = ("deploy", "airflow", training, *PARAMETERS, "--to", place)
    done = orchestrate(*command, "--yes")
    assert (done.status, done.err.splitlines()[0]) == (0, "account 123456789012, region us-east-1")
    s3 = account.client("s3")
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix="airflow/dags/")["Contents"]
    names = {item["Key"].rpartition("/")[2] for item in listed}
    assert names == {"training.py", "training.yaml", "training.lock.json", "orchestration.json"}
    s3.put_object(Bucket=BUCKET, Key="airflow/dags/training/orchestration.json", Body=b"{}")
    refused = orchestrate(*command, "--yes")
    assert (refused.status, "does not list files" in refused.err) == (1, True)


def test_options_of_the_other_target_are_refused(
    orchestrate: Command, training: Path, tmp_path: Path
) -> None:
    for arguments, said in (
        (("deploy", "airflow", training), "the folder of DAGs that Airflow reads"),
        (("deploy", "airflow", training, "--to", tmp_path / "none"), "is no folder"),
        (("deploy", "airflow", training, "--to", tmp_path, "--role", "r"), "for step-functions"),
        (("deploy", "step-functions", training, "--to", tmp_path), "for airflow only"),
        (("destroy", "step-functions", "training", "--to", tmp_path), "for airflow only"),
        (("destroy", "airflow", "training", "--to", tmp_path, "--stop"), "for step-functions"),
    ):
        wrong = orchestrate(*arguments)
        assert (wrong.status, said in wrong.err) == (2, True), wrong.err


def test_code_is_uploaded_once(account: EmbeddedAws, orchestrate: Command, training: Path) -> None:
    (training.parent / "code/train.py").write_text("print('uploaded')\n")
    sent = orchestrate("upload", training, *PARAMETERS, "--json").document["uploaded"]
    assert [each["uri"].rpartition("/")[2] for each in sent] == ["train.py", "sourcedir.tar.gz"]
    again = orchestrate("upload", training, *PARAMETERS)
    assert (again.status, again.out) == (0, "")


def test_refusals_are_json_too(account: EmbeddedAws, orchestrate: Command, training: Path) -> None:
    said = orchestrate("upload", training, "-p", "bucket=not-there-at-all", "--json")
    assert said.status == 1
    assert said.document["error"] == "DeployError"
    assert said.document["message"] in said.err


def test_the_default_region_is_the_pipelines(
    account: EmbeddedAws, orchestrate: Command, training: Path
) -> None:
    training.write_text(training.read_text() + "region: us-west-2\n")
    command = ("deploy", "step-functions", training, *PARAMETERS, "--dry-run")
    assert orchestrate(*command, "--json").document["region"] == "us-west-2"
    said = orchestrate(*command, "--region", "us-east-1")
    assert (said.status, said.out) == (1, "")
    assert "training runs in us-west-2, and the session is for us-east-1" in said.err


def test_code_is_uploaded_in_the_region_of_the_pipeline(
    account: EmbeddedAws, orchestrate: Command, training: Path
) -> None:
    training.write_text(training.read_text() + "region: us-west-2\n")
    said = orchestrate("upload", training, *PARAMETERS, "--region", "us-east-1")
    assert said.status != 0
    assert "runs in us-west-2, and the session is for us-east-1" in said.err


def test_a_session_reads_credentials_anew_and_models_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    for key in ("before", "after"):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        session = new_session("eu-west-1", None)
        client = session.client("sagemaker")
        assert client.meta.region_name == "eu-west-1"
        assert session.get_credentials().access_key == key
        parsed.append(client.meta.service_model.metadata)
    assert parsed[0] is parsed[1]


def test_an_earlier_name_goes_with_the_deployment_under_a_new_one(
    account: EmbeddedAws, orchestrate: Command, training: Path
) -> None:
    text = training.read_text()
    training.write_text(text.replace("name: training", "name: called-before"))
    assert orchestrate("deploy", "step-functions", training, *PARAMETERS, "--yes").status == 0
    training.write_text(text.replace("name: training", "name: called-now"))
    command = ("deploy", "step-functions", training, *PARAMETERS)
    told = orchestrate(*command, "--dry-run")
    assert "warning: pipeline called-before is deployed here, with the same stages" in told.err
    shown = orchestrate(*command, "--dry-run", "--renamed-from", "called-before")
    created, deleted = (
        shown.out.index(f"would {change}")
        for change in ("create state machine called-now", "delete state machine called-before")
    )
    assert created < deleted
    wrong = orchestrate(*command, "--dry-run", "--renamed-from", "called-now")
    assert (wrong.status, "called-now has this name now" in wrong.err) == (1, True)
