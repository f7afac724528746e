"""Runs from this very process, against the embedded AWS over the wire."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import boto3
import pytest

import orchestration
from orchestration import Parameter, Pipeline, RunError, StartError
from orchestration.direct import Progress
from orchestration.local import Fault
from tests.direct.conftest import COPYING, ROLE, Account

PARAMETERS = {"bucket": "workspace", "data": "s3://incoming/set", "role": ROLE}


def run(pipeline: Pipeline, account: Account, **options: Any) -> orchestration.direct.Outcome:
    return orchestration.run(
        pipeline, **{"parameters": PARAMETERS, "session": account.aws, **options}
    )


@pytest.fixture
def pipeline(copying: Path) -> Pipeline:
    return Pipeline.load(copying)


def test_a_run_returns_what_the_pipeline_shows(account: Account, pipeline: Pipeline) -> None:
    changes: list[Progress] = []
    outcome = run(pipeline, account, on_progress=changes.append)
    assert outcome.state == "succeeded"
    outputs: Any = outcome.outputs
    assert outputs["staging"]["object_count"] == 2
    done = [change.step for change in changes if change.state == "succeeded"]
    assert done.index("staging.list") < done.index("staging.copy") < done.index("staging.verify")
    assert all(step.state == "succeeded" and step.duration_s is not None for step in outcome.steps)


def test_a_failed_run_is_raised_with_its_error(account: Account, pipeline: Pipeline) -> None:
    with pytest.raises(RunError, match="below s3://incoming/none") as caught:
        run(pipeline, account, parameters={**PARAMETERS, "data": "s3://incoming/none"})
    assert caught.value.error == "SourceNotUsable"


def test_no_account_is_guessed(pipeline: Pipeline) -> None:
    with pytest.raises(StartError, match=r"pass session=boto3\.Session"):
        orchestration.run(pipeline, PARAMETERS)


def test_a_session_without_a_region_is_refused(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(StartError, match="region_name="):
        orchestration.run(pipeline, PARAMETERS, session=boto3.Session())


def test_another_region_is_refused_before_anything_is_sent(account: Account, copying: Path) -> None:
    copying.write_text(COPYING + "region: us-west-2\n")
    with pytest.raises(StartError, match=r"runs in us-west-2, and the session is for us-east-1"):
        run(Pipeline.load(copying), account)
    assert account.aws.calls() == []


def test_a_null_is_a_parameter_that_is_not_given(account: Account, pipeline: Pipeline) -> None:
    given: dict[str, Any] = {**PARAMETERS, "data": None}
    with pytest.raises(RunError) as caught:
        run(pipeline, account, parameters=given)
    assert caught.value.cause == "parameter data is missing"


def test_a_wrong_input_has_the_error_of_the_other_backends(
    account: Account, pipeline: Pipeline
) -> None:
    wrong: dict[str, Any] = {"bucket": "workspace", "data": 3, "dat": "x"}
    with pytest.raises(RunError) as caught:
        run(pipeline, account, parameters=wrong)
    assert caught.value.error == "InvalidInput"
    assert caught.value.cause == "parameter data is not of type string; there is no parameter dat"
    assert account.aws.calls() == []


def test_a_run_that_has_ended_is_not_run_again(account: Account, pipeline: Pipeline) -> None:
    first = run(pipeline, account, run_id="once")
    copies = account.sent("CopyObject")
    assert run(pipeline, account, run_id="once") == first
    assert account.sent("CopyObject") == copies


def test_a_run_that_failed_is_tried_again_until_it_succeeds(
    account: Account, pipeline: Pipeline
) -> None:
    account.aws.inject(Fault("s3", "CopyObject", "AccessDenied", "not yours", status=403, times=4))
    for _ in range(2):
        with pytest.raises(RunError, match="not yours"):
            run(pipeline, account, run_id="bad")
    third = run(pipeline, account, run_id="bad")
    assert third.state == "succeeded"
    assert run(pipeline, account, run_id="bad") == third
    assert account.sent("CopyObject") == 2


def test_a_failed_run_is_not_tried_again_with_other_parameters(
    account: Account, pipeline: Pipeline
) -> None:
    account.aws.inject(Fault("s3", "CopyObject", "AccessDenied", "not yours", status=403, times=4))
    for _ in range(2):
        with pytest.raises(RunError, match="not yours"):
            run(pipeline, account, run_id="bad")
    other = {**PARAMETERS, "data": "s3://incoming/other"}
    with pytest.raises(StartError, match="parameter data was 's3://incoming/set' and is 's3://inc"):
        run(pipeline, account, run_id="bad", parameters=other)


def test_other_parameters_under_the_same_run_id_are_refused(
    account: Account, pipeline: Pipeline
) -> None:
    run(pipeline, account, run_id="same")
    other = {**PARAMETERS, "data": "s3://incoming/other"}
    with pytest.raises(StartError, match="parameter data was 's3://incoming/set' and is 's3://inc"):
        run(pipeline, account, run_id="same", parameters=other)


def test_another_definition_under_the_same_run_id_is_refused(
    account: Account, pipeline: Pipeline
) -> None:
    run(pipeline, account, run_id="same")
    assert isinstance(pipeline.stages[0], orchestration.DataStaging)
    elsewhere = orchestration.DataStaging(name="staging", source="s3://incoming/set")
    other = Pipeline(
        name="copying",
        parameters={"bucket": Parameter(), "data": Parameter()},
        workspace=pipeline.workspace,
        stages=[elsewhere],
    )
    with pytest.raises(StartError, match="the pipeline's definition is another one"):
        run(other, account, run_id="same")


def test_a_workspace_that_cannot_be_written_is_told_before_the_first_step(
    account: Account, pipeline: Pipeline
) -> None:
    account.aws.inject(Fault("s3", "PutObject", "AccessDenied", "no", status=403))
    with pytest.raises(RunError, match=r"the journal s3://workspace/copying/.* AccessDenied: no"):
        run(pipeline, account)
    assert account.sent("CopyObject") == 0


def test_outputs_that_cannot_be_kept_fail_the_run(account: Account, pipeline: Pipeline) -> None:
    def deny(progress: Progress) -> None:
        if progress.step == "staging.list" and progress.state == "running":
            account.aws.inject(Fault("s3", "PutObject", "AccessDenied", "no", status=403))

    with pytest.raises(RunError, match="AccessDenied: no"):
        run(pipeline, account, on_progress=deny)
    assert account.sent("CopyObject") == 0


def test_a_display_that_fails_leaves_the_run_alone(
    account: Account, pipeline: Pipeline, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: Progress) -> None:
        raise ValueError("no screen")

    assert run(pipeline, account, on_progress=broken).state == "succeeded"
    assert "the progress callback failed" in caplog.text


def test_expired_credentials_are_asked_for_again(account: Account, pipeline: Pipeline) -> None:
    expired = Fault("s3", "ListObjectsV2", "ExpiredToken", "the token has expired")
    account.aws.inject(expired)
    assert run(pipeline, account).state == "succeeded"


def test_runs_in_threads_do_not_mix(account: Account, pipeline: Pipeline) -> None:
    outcomes: dict[str, Any] = {}

    def start(name: str) -> None:
        outcomes[name] = run(pipeline, account, run_id=name)

    threads = [threading.Thread(target=start, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    locations = {outcome.outputs["staging"]["location"] for outcome in outcomes.values()}
    assert len(locations) == 2
