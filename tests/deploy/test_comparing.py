"""What is seen as a change, and how it is told."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from orchestration.deploy import Account, Change, Current, Desired, Schedule, desired, difference
from orchestration.errors import DeployError, PipelineError
from orchestration.expressions import Json
from tests.deploy import pipelines
from tests.deploy.pipelines import ACCOUNT, PARAMETERS


@pytest.fixture(scope="module")
def wanted() -> Desired:
    return desired(
        pipelines.copying(schedule={"cron": "0 6 * * *"}, overlap="allow"),
        ACCOUNT,
        parameters=PARAMETERS,
    )


def as_wanted(wanted: Desired, **changed: Any) -> Current:
    return Current(
        **{
            "sources": wanted.sources,
            "role": wanted.role,
            "machine": wanted.machine,
            "schedule_role": wanted.schedule_role,
            "schedule": wanted.schedule,
            **changed,
        }
    )


def test_nothing_differs_from_itself(wanted: Desired) -> None:
    assert difference(wanted, as_wanted(wanted)) == ()


def test_desired_twice_is_equal(wanted: Desired) -> None:
    again = desired(
        pipelines.copying(schedule={"cron": "0 6 * * *"}, overlap="allow"),
        ACCOUNT,
        parameters=PARAMETERS,
    )
    assert again == wanted


@pytest.mark.parametrize(
    ("field", "value"),
    [("state", "DISABLED"), ("window_minutes", 15), ("timezone", "Asia/Tokyo"), ("input", {})],
)
def test_a_schedule_changed_by_hand_is_a_change(wanted: Desired, field: str, value: Any) -> None:
    assert isinstance(wanted.schedule, Schedule)
    found = replace(wanted.schedule, **{field: value})
    [change] = difference(wanted, as_wanted(wanted, schedule=found))
    shown = field.removesuffix("_minutes")
    assert change.summary == f"update schedule copying: {shown}"


def test_another_role_is_a_change_of_the_machine(wanted: Desired) -> None:
    found = replace(wanted.machine, role_arn="arn:aws:iam::123456789012:role/old")
    [change] = difference(wanted, as_wanted(wanted, machine=found))
    assert change.aspects == ("role",)
    assert '-  "role": "arn:aws:iam::123456789012:role/old",' in change.detail.splitlines()
    assert f'+  "role": "{wanted.role.arn}",' in change.detail.splitlines()


def test_an_express_machine_can_not_be_changed(wanted: Desired) -> None:
    with pytest.raises(DeployError, match="EXPRESS"):
        difference(wanted, as_wanted(wanted, machine_type="EXPRESS"))


def test_a_deletion_shows_what_goes(wanted: Desired) -> None:
    change = Change(wanted.schedule, None)
    assert change.summary == "delete schedule copying"
    assert '-  "timezone": "UTC",' in change.detail.splitlines()


def test_the_role_of_a_schedule_outlives_it_no_more_than_needed(wanted: Desired) -> None:
    without = desired(pipelines.copying(), ACCOUNT, parameters=PARAMETERS)
    assert [change.summary for change in difference(without, as_wanted(wanted))] == [
        "update state machine copying: definition",
        "delete schedule copying",
        "delete role copying-us-east-1-schedule",
    ]


def test_parameters_from_a_command_line_are_read_in_their_types() -> None:
    number = {"type": "number"}
    pipeline = pipelines.copying(
        parameters={"bucket": {}, "data": {}, "count": number, "fast": {"type": "boolean"}},
        schedule={"cron": "0 6 * * *"},
    )
    given = {**PARAMETERS, "count": "3", "fast": "true"}
    found = desired(pipeline, ACCOUNT, parameters=given).schedule
    assert found is not None
    assert found.input == {
        **PARAMETERS,
        "count": 3,
        "fast": True,
        "orchestration:run": "copying/<aws.scheduler.scheduled-time>",
    }


def test_parameters_that_do_not_fit_are_all_named() -> None:
    given: dict[str, Json] = {**PARAMETERS, "bukcet": "x", "data": 3}
    with pytest.raises(DeployError) as caught:
        desired(pipelines.copying(), ACCOUNT, parameters=given)
    assert "did you mean 'bucket'?" in str(caught.value)
    assert "'data': expected a string, got 3" in str(caught.value)


def test_a_misspelled_schedule_is_the_pipelines_problem() -> None:
    with pytest.raises(PipelineError):
        pipelines.copying(schedule={"cron": "0 6 * *"})


def test_an_unknown_region_is_told_with_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    import boto3

    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(DeployError, match="AWS_REGION"):
        Account.of(boto3.Session())


def test_a_pipeline_of_another_region_is_refused() -> None:
    with pytest.raises(DeployError) as caught:
        desired(pipelines.copying(region="us-west-2"), ACCOUNT, parameters=PARAMETERS)
    assert str(caught.value) == (
        "pipeline copying runs in us-west-2, and the session is for us-east-1; use one for "
        "us-west-2, or change the region of the pipeline"
    )


@pytest.mark.parametrize(
    ("region", "partition"),
    [("us-west-2", "aws"), ("cn-north-1", "aws-cn"), ("us-gov-west-1", "aws-us-gov")],
)
def test_a_definition_names_the_partition_of_its_region(region: str, partition: str) -> None:
    account = replace(ACCOUNT, partition=partition, region=region)
    machine = desired(pipelines.copying(region=region), account, parameters=PARAMETERS).machine
    text = json.dumps(machine.definition)
    assert f'"Resource": "arn:{partition}:states:::aws-sdk:s3:copyObject"' in text
    assert text.count('"Resource": "arn:') == text.count(f'"Resource": "arn:{partition}:')
