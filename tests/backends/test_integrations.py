"""The table of fields that Step Functions' integrations may not know, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import botocore.session
import pytest

from orchestration import PipelineError, TrainingJob, UnsupportedError
from orchestration.backends import stepfunctions
from orchestration.backends.stepfunctions.integrations import table
from orchestration.backends.stepfunctions.integrations.choosing import unsure
from orchestration.graph import Call, Integration, Operation
from tests.backends import definitions
from tests.backends.test_stepfunctions import training
from tests.backends.workflows import TOKEN, workflow
from tests.conformance import pipelines

SYNC = "arn:aws:states:::sagemaker:createTrainingJob.sync"
SDK = "arn:aws:states:::aws-sdk:sagemaker:createTrainingJob"
OLDER = {"RemoteDebugConfig": {"EnableRemoteDebug": True}}
"""In the API for years, and not known to be taken by ``.sync``."""
RECENT = {"MlflowConfig": {"MlflowResourceArn": "arn"}}
LATEST: dict[str, Any] = {"ResourceConfig": {"InstancePreferences": []}}
"""Later than the last update of Step Functions' integrations."""


@cache
def members(operation: str) -> frozenset[str]:
    """Return the paths of all fields of a request, in botocore's model."""
    service, _, name = operation.partition(":")
    model = botocore.session.get_session().get_service_model(service)
    return frozenset(_paths(model.operation_model(name).input_shape, "", ()))


def _paths(shape: Any, at: str, around: tuple[str, ...]) -> Iterator[str]:
    if shape.type_name == "structure" and shape.name not in around:
        for name, member in shape.members.items():
            path = f"{at}.{name}" if at else name
            yield path
            yield from _paths(member, path, (*around, shape.name))
    elif shape.type_name == "list":
        yield from _paths(shape.member, at, around)


def known(operation: str) -> frozenset[str]:
    return frozenset(
        f"{at}.{name}" if at else name
        for (of, at), names in table.known().items()
        if of == operation
        for name in names
    )


def rows(operation: str) -> dict[str, table.NewField]:
    return {path: row for (of, path), row in table.newer().items() if of == operation}


OPERATIONS = sorted({operation for operation, _ in table.known()})


@pytest.mark.parametrize("operation", OPERATIONS)
def test_each_field_of_the_api_is_known_or_has_a_row(operation: str) -> None:
    mentioned = known(operation) | rows(operation).keys()
    new = {
        path
        for path in members(operation) - mentioned
        if not any(path.startswith(f"{above}.") for above in rows(operation))
    }
    assert new == set()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_the_table_names_no_field_that_the_api_lacks(operation: str) -> None:
    assert (known(operation) | rows(operation).keys()) - members(operation) == set()
    both = {path for path in known(operation) & rows(operation).keys()}
    assert {path for path in both if rows(operation)[path].sync == "known"} == set()


@pytest.mark.parametrize("operation", sorted(table.synchronous()))
def test_each_field_of_a_job_is_taken_by_sync_or_has_a_row(operation: str) -> None:
    whole = {path for path in members(operation) if "." not in path}
    assert table.synchronous()[operation] | (rows(operation).keys() & whole) == whole
    assert not table.synchronous()[operation] & rows(operation).keys()


def test_what_is_certain_follows_from_when_a_field_came() -> None:
    for row in table.newer().values():
        expected = "known" if row.since <= table.SETTLED else "doubtful"
        assert row.sdk == ("refused" if row.since > table.UPDATED else expected), row
        assert row.sync in ("doubtful", "refused") or row.sdk == "known", row


def test_each_basis_is_a_source_that_was_read() -> None:
    sources = {row["key"] for row in table._rows("sources.csv")}
    assert {row["basis"] for row in table._rows("synchronous.csv")} <= sources
    assert all(row["read"] >= "2026-11" for row in table._rows("sources.csv"))


def test_a_field_that_came_after_the_table_is_doubtful() -> None:
    request: dict[str, Any] = {
        "ResourceConfig": {"Tomorrow": 1, "InstanceType": "x"},
        "HyperParameters": {"a": ""},
    }
    [field] = unsure(Operation("sagemaker", "CreateTrainingJob", request), "sdk")
    assert (field.path, field.since) == ("ResourceConfig.Tomorrow", "")
    assert field.certainty("sdk") == "doubtful"


def rendered(call: Call, **integrations: Integration) -> Mapping[str, Any]:
    made = replace(workflow(call, parameters=(TOKEN,)), integrations=integrations)
    return definitions.states(stepfunctions.render(made))


@pytest.mark.parametrize(
    ("fields", "integrations", "resource"),
    [
        ({}, {}, SYNC),
        (OLDER, {}, SDK),
        (OLDER, {"train": "sync"}, SYNC),
        ({}, {"train": "sdk"}, SDK),
        ({}, {"": "sdk"}, SDK),
        ({}, {"": "sdk", "train": "sync"}, SYNC),
        (LATEST, {"train": "sdk"}, SDK),
    ],
)
def test_a_pipeline_chooses_the_integration(
    fields: dict[str, Any], integrations: dict[str, Integration], resource: str
) -> None:
    states = rendered(training("train.job", **fields), **integrations)
    assert states["train-job"]["Resource"] == resource
    # After either a poll is written, since a response may be lost.
    assert "train-job-Poll" in states


def test_a_field_that_is_sure_to_be_refused_is_refused_while_rendering() -> None:
    with pytest.raises(UnsupportedError) as refused:
        rendered(training("train.job", **LATEST))
    assert str(refused.value) == (
        "train.job: ResourceConfig.InstancePreferences is in the API since 2026-09-22, later than "
        "the last update of Step Functions' integrations (2026-08-18); leave it out, or run the "
        "pipeline on Airflow or directly; or, if Step Functions has learnt it since, choose an "
        "integration for this stage: `integration: {train: sdk}`"
    )


def test_a_choice_for_a_stage_without_a_job_is_an_error() -> None:
    with pytest.raises(UnsupportedError, match=r"integration\.staging: only stages with a job"):
        rendered(training("train.job"), staging="sdk")


@pytest.mark.parametrize(
    ("fields", "integrations", "said"),
    [
        ({}, {}, ""),
        (OLDER, {}, ""),
        (OLDER, {"train": "sync"}, "`integration: sdk` sends it by aws-sdk, which takes it"),
        (RECENT, {}, "it is not known whether the aws-sdk integration of Step Functions"),
        (RECENT, {"train": "sync"}, "which may not know it either"),
        (LATEST, {"train": "sdk"}, "CreateTrainingJob has this field since 2026-09-22"),
    ],
)
def test_what_is_doubtful_is_a_warning(
    fields: dict[str, Any], integrations: dict[str, Integration], said: str
) -> None:
    made = replace(
        workflow(training("train.job", **fields), parameters=(TOKEN,)), integrations=integrations
    )
    warnings = stepfunctions.warnings(made)
    assert len(warnings) == bool(said)
    for warning in warnings:
        assert warning.stage == "train"
        assert said in warning.message
        assert "States.Runtime" in warning.message


def stage(**fields: Any) -> TrainingJob:
    return pipelines.training("train", "s3://incoming/set/train", **fields)


def test_a_pipeline_says_it_for_all_stages_or_for_some() -> None:
    made = pipelines.pipeline("choosing", stage())
    assert made.lower().integrations == {}
    assert made.model_copy(update={"integration": "sdk"}).integrations() == {"": "sdk"}
    with pytest.raises(PipelineError, match="there is no stage 'trian'; did you mean 'train'"):
        type(made)(**{**dict(made), "integration": {"trian": "sdk"}})
    with pytest.raises(PipelineError, match="integration: expected 'sync' or 'sdk'"):
        type(made)(**{**dict(made), "integration": "polled"})
