"""The resources that a run may leave are read from its steps, whatever stages they are from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import botocore.session
import pytest

from orchestration import (
    DataStaging,
    Deployment,
    EndpointUpdate,
    Pipeline,
    S3Destination,
    parameter,
)
from orchestration.backends import companion
from orchestration.cleanup import JobKind, leftovers
from orchestration.cleanup.leftovers import JOB_KINDS
from orchestration.graph import Call, Graph, Guarded, Operation, all_steps
from tests.deploy import pipelines

ROOT = Path(__file__).parents[2]


def prefixes(pipeline: Pipeline) -> dict[str, tuple[str, ...]]:
    left = leftovers(pipeline.lower().graph)
    return {jobs.kind.word: jobs.prefixes for jobs in left.jobs}


def test_jobs_are_found_by_the_beginnings_of_their_names(tmp_path: Path) -> None:
    digits = pipelines.digits(pipelines.source_folder(tmp_path))
    assert prefixes(digits) == {"Training": ("digits-train-",), "Processing": ("digits-evaluate-",)}
    assert not leftovers(digits.lower().graph).file_systems


def test_a_guard_acquires_a_file_system() -> None:
    assert leftovers(pipelines.lustre().lower().graph).file_systems


def test_a_transfer_is_found_by_the_beginning_of_its_tasks_name() -> None:
    destination = S3Destination(copy_by="datasync")
    staging = DataStaging(name="staging", source=parameter("data"), destination=destination)
    left = leftovers(pipelines.copying(stages=(staging,)).lower().graph)
    assert left.transfers == ("copying-staging-",)
    assert (left.file_systems, left.unknown) == (False, ())


def test_a_pipeline_that_starts_nothing_needs_no_companion() -> None:
    copying = pipelines.copying().lower()
    assert not leftovers(copying.graph)
    assert companion.render(copying) is None


def test_what_can_not_be_found_is_named() -> None:
    workflow = pipelines.lustre().lower()
    [job] = [s for s in all_steps(workflow.graph) if isinstance(s, Call) and s.adopt]
    strange = replace(job, operation=Operation("batch", "SubmitJob", {"jobName": "x"}))
    assert leftovers(Graph((strange,))).unknown == ("train.job",)
    rendered = companion.render(replace(workflow, graph=Graph((*workflow.graph.steps, strange))))
    assert rendered is not None
    assert str(rendered["Comment"]).endswith("It can't find what these steps start: train.job.")


def trial(place: int = 0) -> Guarded:
    deploy = Deployment(
        name="deploy",
        model_data="s3://bucket/model",
        image="111122223333.dkr.ecr.us-east-1.amazonaws.com/a:1",
        instance_type="ml.m5.large",
        update=EndpointUpdate.model_validate({"trial": {"cases": [{"request": 1}], "after": True}}),
    )
    guarded = [
        step
        for step in all_steps(pipelines.copying(stages=(deploy,)).lower().graph)
        if isinstance(step, Guarded)
    ]
    return guarded[place]


@pytest.mark.parametrize("place", [0, 1])
def test_a_trial_or_check_is_found_by_the_beginning_of_its_name(place: int) -> None:
    left = leftovers(Graph((trial(place),)))
    assert (left.trials, left.unknown) == (("copying-deploy-",), ())


def test_an_endpoint_that_is_not_marked_as_temporary_is_never_deleted() -> None:
    guarded = trial()
    operation = guarded.acquire.operation
    request = {**operation.request, "Tags": []}
    create = replace(guarded.acquire, operation=replace(operation, request=request))
    left = leftovers(Graph((replace(guarded, acquire=create),)))
    assert (left.trials, left.unknown) == ((), ("deploy.trial_endpoint",))


def test_every_kind_of_job_is_listed_and_stopped_by_operations_that_exist() -> None:
    operations = set(botocore.session.Session().get_service_model("sagemaker").operation_names)
    for kind in JOB_KINDS.values():
        assert {kind.list, kind.stop} <= operations
    assert JobKind(word="HyperParameterTuning").resource == "hyper-parameter-tuning-job"
    assert JobKind(word="Training").resource == "training-job"
