"""A deployment is destroyed whole, also when that is cut off, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestration import Pipeline
from orchestration.cleanup import KEEP, PIPELINE, RUN
from orchestration.cleanup import MACHINE as OF_MACHINE
from orchestration.deploy import Destruction, destruction, plan, step_functions
from orchestration.errors import DeployError
from orchestration.local import EmbeddedAws
from tests.deploy.pipelines import SLEEPING, short_pause
from tests.local.conftest import ROLE, wait

pytestmark = pytest.mark.slow  # starts the embedded AWS

STARTED = """\
region: us-east-1
notify: {on_failure: {sns_topic: "arn:aws:sns:us-east-1:123456789012:alerts"}}
schedule: {cron: "30 6 * * *", timezone: UTC}
trigger: {s3: {bucket: incoming, prefix: new/}}
"""
PARAMETERS = {"bucket": "workspace", "role": ROLE}
MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:sleeping"
_READS = ("Get", "Describe", "List", "Head")


_REPEATED = ("PublishStateMachineVersion", "StartExecution")


class CutOff(Exception):
    """The end of a process."""


@dataclass
class Cutting:
    """A session cut off after each call that changes something, once after repeated ones.

    The same request again is a repetition, too: what was cut off does it over.

    With ``cuts``, only after those, counted from 1 over all that is made.
    """

    aws: EmbeddedAws
    made: list[str] = field(default_factory=list)
    cuts: frozenset[int] | None = None
    _done: set[str] = field(default_factory=set)
    _clients: list[Any] = field(default_factory=list)

    def client(self, service_name: str, /) -> Any:
        client = self.aws.client(service_name)
        client.meta.events.register("before-parameter-build", _remember, unique_id="asked")
        client.meta.events.register("after-call", self._count, unique_id="cutting")
        self._clients.append(client)
        return client

    def release(self) -> None:
        """Let the account's clients be as they were."""
        for client in self._clients:
            client.meta.events.unregister("before-parameter-build", unique_id="asked")
            client.meta.events.unregister("after-call", unique_id="cutting")

    def _count(self, model: Any, http_response: Any, context: dict[str, Any], **_: Any) -> None:
        if not model.name.startswith(_READS) and http_response.status_code < 300:
            request = f"{model.name} {context['cutting']}"
            repeated = model.name in _REPEATED and model.name in self.made
            again = repeated or request in self._done
            self.made.append(model.name)
            self._done.add(request)
            if len(self.made) in self.cuts if self.cuts is not None else not again:
                raise CutOff(model.name)


def _remember(params: dict[str, Any], context: dict[str, Any], **_: Any) -> None:
    # A body is a stream, another one each time.
    context["cutting"] = repr({name: value for name, value in params.items() if name != "Body"})


def _no_pause(seconds: float) -> None:
    pass


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        s3 = embedded.client("s3")
        for bucket in ("workspace", "incoming"):
            s3.create_bucket(Bucket=bucket)
        s3.put_bucket_notification_configuration(
            Bucket="incoming", NotificationConfiguration={"EventBridgeConfiguration": {}}
        )
        topic = embedded.client("sns").create_topic(Name="alerts")["TopicArn"]
        embedded.client("sns").set_topic_attributes(
            TopicArn=topic, AttributeName="Policy", AttributeValue=json.dumps(_open(topic))
        )
        embedded.provide(roles=[ROLE], subnets=["subnet-0123abcd"], security_groups=["sg-0123abcd"])
        yield embedded


def _open(topic: str) -> dict[str, Any]:
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sns:Publish",
        "Resource": topic,
    }
    return {"Version": "2012-10-17", "Statement": [statement]}


@pytest.fixture
def deployed(aws: EmbeddedAws, tmp_path: Path) -> EmbeddedAws:
    path = tmp_path / "sleeping.yaml"
    path.write_text(SLEEPING + STARTED)
    step_functions(Pipeline.load(path), session=aws, parameters=PARAMETERS, sleep=_no_pause)
    return aws


def _renamed(folder: Path) -> Path:
    path = folder / "sleeping.yaml"
    path.write_text(path.read_text().replace("name: sleeping", "name: dozing"))
    return path


def found(aws: EmbeddedAws) -> Destruction:
    return destruction("sleeping", session=aws)


def left(aws: EmbeddedAws) -> set[str]:
    """Everything in the account that deployments are made of."""
    iam, states, events, scheduler = (
        aws.client(name) for name in ("iam", "stepfunctions", "events", "scheduler")
    )
    return {
        *(role["RoleName"] for role in iam.list_roles()["Roles"]),
        *(each["stateMachineArn"] for each in states.list_state_machines()["stateMachines"]),
        *(f"rule {rule['Name']}" for rule in events.list_rules()["Rules"]),
        *(f"schedule {each['Name']}" for each in scheduler.list_schedules()["Schedules"]),
    }


def test_everything_goes_and_nothing_else(aws: EmbeddedAws, deployed: EmbeddedAws) -> None:
    iam = aws.client("iam")
    iam.create_role(RoleName="sleeping-notes", AssumeRolePolicyDocument="{}")
    planned = found(aws)
    assert [change.summary for change in planned.changes] == [
        "delete schedule sleeping",
        "delete role sleeping-us-east-1-schedule",
        "delete rule sleeping-trigger",
        "delete role sleeping-us-east-1-trigger",
        "delete role sleeping-us-east-1-states",
        "delete state machine sleeping",
        "delete schedule sleeping-companion",
        "delete rule sleeping-companion",
        "delete role sleeping-us-east-1-sweep",
        "delete role sleeping-us-east-1-companion",
        "delete state machine sleeping-companion",
        "delete rule sleeping-failure",
    ]
    planned.apply(sleep=_no_pause)
    assert {name for name in left(aws) if "sleeping" in name} == {"sleeping-notes"}
    assert found(aws).changes == ()
    iam.delete_role(RoleName="sleeping-notes")


def test_what_a_destruction_left_when_it_was_cut_off_goes_with_the_next(
    aws: EmbeddedAws, deployed: EmbeddedAws
) -> None:
    cutting = Cutting(aws)
    for _ in range(40):
        try:
            destruction("sleeping", session=cutting).apply(sleep=short_pause)
        except CutOff:
            continue
        break
    cutting.release()
    assert {name for name in left(aws) if "sleeping" in name} == set()
    assert len(cutting.made) >= 20
    swept = cutting.made.index("StartExecution")
    assert cutting.made.index("DeleteSchedule") < swept < cutting.made.index("DeleteStateMachine")


def test_of_a_renamed_pipeline_nothing_is_left_under_the_old_name(
    aws: EmbeddedAws, deployed: EmbeddedAws, tmp_path: Path
) -> None:
    dozing = Pipeline.load(_renamed(tmp_path))
    denied = _machine_that_may_not_be_described(aws)
    [told] = plan(dozing, session=aws, parameters=PARAMETERS).deployment.warnings
    assert "deploy with --renamed-from sleeping" in told
    wrong = plan(dozing, session=aws, parameters=PARAMETERS, renamed_from="slepping").deployment
    assert wrong.warnings[0] == told
    assert "nothing of pipeline slepping is deployed here" in wrong.warnings[1]
    denied()
    renamed: dict[str, Any] = {"parameters": PARAMETERS, "renamed_from": "sleeping"}
    planned = plan(dozing, session=aws, **renamed).deployment
    assert planned.warnings == ()
    kinds = [change.kind for change in planned.changes]
    assert kinds == sorted(kinds)  # "create" comes before "delete".
    gone = [change for change in planned.changes if change.kind == "delete"]
    assert gone == list(found(aws).changes)
    cutting, cuts = Cutting(aws, cuts=frozenset({9, 30})), 0
    while cuts < 5:
        try:
            step_functions(dozing, session=cutting, sleep=short_pause, **renamed)
        except CutOff:
            cuts += 1
            continue
        break
    cutting.release()
    assert cuts == 2
    assert {name for name in left(aws) if "sleeping" in name} == set()
    again = plan(dozing, session=aws, **renamed).deployment
    assert again.changes == ()
    assert "nothing of pipeline sleeping is deployed here; leave --renamed-from out" in str(
        again.warnings
    )
    with pytest.raises(DeployError, match="pipeline dozing has this name now"):
        plan(dozing, session=aws, parameters=PARAMETERS, renamed_from="dozing")
    destruction("dozing", session=aws).apply(sleep=_no_pause)


def _machine_that_may_not_be_described(aws: EmbeddedAws) -> Callable[[], None]:
    """Make the newest machine one that an account refuses to describe; return what undoes that."""
    states = aws.client("stepfunctions")
    definition = json.dumps({"StartAt": "End", "States": {"End": {"Type": "Succeed"}}})
    arn = states.create_state_machine(name="secret", definition=definition, roleArn=ROLE)[
        "stateMachineArn"
    ]

    def deny(params: dict[str, Any], **_: Any) -> None:
        if params["stateMachineArn"] == arn:
            raise ClientError({"Error": {"Code": "AccessDenied"}}, "DescribeStateMachine")

    event = "before-parameter-build.sfn.DescribeStateMachine"
    states.meta.events.register(event, deny, unique_id="denied")

    def undo() -> None:
        states.meta.events.unregister(event, unique_id="denied")
        states.delete_state_machine(stateMachineArn=arn)

    return undo


def test_an_earlier_name_that_is_another_pipelines_is_refused(
    aws: EmbeddedAws, deployed: EmbeddedAws, tmp_path: Path
) -> None:
    text = (tmp_path / "sleeping.yaml").read_text().replace("name: sleeping", "name: another")
    given: dict[str, Any] = {"parameters": PARAMETERS, "renamed_from": "sleeping"}
    path = tmp_path / "another.yaml"
    path.write_text(text.replace("train:", "nap:"))
    assert plan(Pipeline.load(path), session=aws, **given).former is not None
    path.write_text(path.read_text().replace("image: image", "image: other"))
    with pytest.raises(DeployError, match="pipeline sleeping shares no stage with this one"):
        plan(Pipeline.load(path), session=aws, **given)
    found(aws).apply(sleep=_no_pause)


def test_a_run_is_ended_only_on_request_and_cleaned_up_after(
    aws: EmbeddedAws, deployed: EmbeddedAws, tmp_path: Path
) -> None:
    states = aws.client("stepfunctions")
    dozing = Pipeline.load(_renamed(tmp_path))
    early = found(aws)
    renaming = plan(dozing, session=aws, parameters=PARAMETERS, renamed_from="sleeping")
    given = json.dumps({**PARAMETERS, "seconds": "600"})
    run = states.start_execution(stateMachineArn=MACHINE, input=given)["executionArn"]
    jobs = wait(
        lambda: aws.state()["sagemaker"]["TrainingJobs"],
        lambda jobs: "InProgress" in {job["TrainingJobStatus"] for job in jobs.values()},
    )
    before = left(aws)
    with pytest.raises(DeployError, match=f"1 executions are running, {run} for one"):
        found(aws).apply(sleep=_no_pause)
    assert left(aws) == before
    with pytest.raises(DeployError, match="pipeline sleeping can't be destroyed yet"):
        step_functions(dozing, session=aws, parameters=PARAMETERS, renamed_from="sleeping")
    assert left(aws) == before
    for planned_before_it in (renaming, early):
        with pytest.raises(DeployError, match=f"only what starts runs is destroyed yet.*{run}"):
            planned_before_it.apply(sleep=short_pause)
        assert states.describe_execution(executionArn=run)["status"] == "RUNNING"
    assert before - left(aws) >= {"schedule sleeping", "rule sleeping-trigger"}
    assert MACHINE in left(aws)
    destruction("dozing", session=aws).apply(sleep=_no_pause)
    found(aws).apply(stop=True, sleep=short_pause)
    assert "StopExecution" in {call.operation for call in aws.calls(include_jobs=True)}
    [job] = [aws.state()["sagemaker"]["TrainingJobs"][name] for name in jobs]
    assert job["TrainingJobStatus"] == "Stopped"
    assert {name for name in left(aws) if "sleeping" in name} == set()


def test_a_file_system_that_is_kept_needs_a_word_of_its_own(
    aws: EmbeddedAws, deployed: EmbeddedAws
) -> None:
    fsx = aws.client("fsx")
    tags = {PIPELINE: "sleeping", OF_MACHINE: MACHINE, RUN: "0123456789ab", KEEP: "48"}
    ids = [_file_system(fsx, {**tags, PIPELINE: name}) for name in ("sleeping", "another")]
    with pytest.raises(DeployError, match=f"file systems {ids[0]} would stay and cost on"):
        found(aws).apply(sleep=_no_pause)
    found(aws).apply(file_systems=True, sleep=short_pause)
    [remaining] = fsx.describe_file_systems()["FileSystems"]
    assert remaining["FileSystemId"] == ids[1]
    assert {name for name in left(aws) if "sleeping" in name} == set()


def _file_system(fsx: Any, tags: dict[str, str]) -> str:
    created = fsx.create_file_system(
        FileSystemType="LUSTRE",
        FileSystemTypeVersion="2.15",
        StorageCapacity=1200,
        SubnetIds=["subnet-0123abcd"],
        LustreConfiguration={"DeploymentType": "SCRATCH_2"},
        Tags=[{"Key": key, "Value": value} for key, value in tags.items()],
    )["FileSystem"]
    return str(created["FileSystemId"])


def test_a_machine_of_somebody_else_is_refused(aws: EmbeddedAws, deployed: EmbeddedAws) -> None:
    states = aws.client("stepfunctions")
    tag = {"key": PIPELINE, "value": "another"}
    states.tag_resource(resourceArn=MACHINE, tags=[tag])
    with pytest.raises(DeployError, match="was not deployed for pipeline sleeping"):
        found(aws)
    states.tag_resource(resourceArn=MACHINE, tags=[{**tag, "value": "sleeping"}])
    found(aws).apply(sleep=_no_pause)
