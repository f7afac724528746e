"""Mistakes that a user makes with loops, lists of stages and references: each with a way out."""

from __future__ import annotations

import re
from typing import Any

import pytest

from orchestration import AwsCall, Pipeline, PipelineError
from orchestration.stages.kinds import Kinds
from tests.pipeline.building import Data, job, pipeline

TOPIC = "arn:aws:sns:us-east-1:111122223333:news"


def tells(name: str, message: Any = "m", **further: Any) -> Data:
    request = {"TopicArn": TOPIC, "Message": message}
    call = {"kind": "aws_call", "service": "sns", "operation": "Publish", "request": request}
    return {**call, "name": name, "results": {"message": "MessageId"}, **further}


def in_python(name: str = "a", message: Any = "m") -> AwsCall:
    request = {"TopicArn": TOPIC, "Message": message}
    results = {"message": "MessageId"}
    return AwsCall(name=name, service="sns", operation="Publish", request=request, results=results)


@pytest.mark.parametrize(
    ("loop", "problem"),
    [
        (
            ["de", "fr"],
            "for_each: expected a mapping, got ['de', 'fr']; write {items: <the list>}",
        ),
        (
            {"parameter": "markets"},
            "for_each: expected a mapping, got a reference; write {items: {parameter: markets}}",
        ),
        (
            {"items": [["de"], ["fr"]]},
            "for_each.items: element 1 is a list; expected texts, numbers or objects",
        ),
        (
            {"items": {"market": "de"}},
            "for_each.items: expected a list, or a reference to one, got {'market': 'de'}",
        ),
    ],
)
def test_a_loop_over_what_is_no_list_says_what_to_write(loop: Any, problem: str) -> None:
    with pytest.raises(PipelineError) as error:
        pipeline(job("a", for_each=loop), parameters={"markets": {"type": "array"}})
    assert [str(each) for each in error.value.problems] == [f"stages.a.{problem}"]


ONE = job("one")
IN_PIPELINE = "is unknown; it is a field of the whole pipeline: write"


@pytest.mark.parametrize(
    ("stage", "top", "problem"),
    [
        (
            ONE,
            {"schedule": {"cron": "0 3 * * *", "overlap": "skip"}},
            f"schedule.overlap: {IN_PIPELINE} overlap beside stages",
        ),
        (
            {**ONE, "cluster": {**ONE["cluster"], "workspace": "s3://b"}},
            {},
            f"stages.one.cluster.workspace: {IN_PIPELINE} workspace beside stages",
        ),
        (
            {**ONE, "cluster": {**ONE["cluster"], "spot": {"max_wait_s": 9}}},
            {},
            "stages.one.cluster.spot: is unknown; it belongs to what is around: write spot beside "
            "cluster",
        ),
        (
            {**ONE, "source": {"directory": "src", "entrypoint": "a.py"}},
            {},
            "stages.one.source.entrypoint: is unknown; did you mean 'entry_point'?",
        ),
        (
            {**ONE, "channels": {"train": {"url": "s3://b/d", "input_mode": "File"}}},
            {},
            "stages.one.channels.train: has no kind; give it one of kind: s3, fsx_lustre, efs; url "
            "is unknown; did you mean 'uri'?",
        ),
        (
            {**ONE, "channels": {"train": "{{ staging.location }}"}},
            {},
            "stages.one.channels.train.uri: expected an S3 URI, got '{{ staging.location }}'; "
            "write s3://bucket/prefix, or a reference: {ref: staging.location}",
        ),
    ],
)
def test_a_field_in_the_wrong_place_is_told_its_own(stage: Data, top: Data, problem: str) -> None:
    with pytest.raises(PipelineError) as error:
        pipeline(stage, **top)
    assert problem in [str(each) for each in error.value.problems]


@pytest.mark.parametrize("key", ["type", "knd"])
def test_a_kind_under_another_key_is_found(key: str) -> None:
    stage = {**{k: v for k, v in ONE.items() if k != "kind"}, key: "training_job"}
    with pytest.raises(PipelineError, match=f"has no kind; .*; write kind instead of {key}"):
        pipeline(stage)


def test_a_stage_without_anything_is_the_one_mistake() -> None:
    with pytest.raises(PipelineError) as error:
        Pipeline.parse({"name": "p", "workspace": "s3://b/w", "stages": {"a": None}})
    assert str(error.value) == "stages.a: expected a mapping with a kind, got None"


def test_a_region_that_nobody_knows_is_a_warning() -> None:
    image = "111122223333.dkr.ecr.us-esat-1.amazonaws.com/training:1"
    [warning] = pipeline(job("one", image=image), region="us-esat-1").warnings()
    assert str(warning) == (
        "region: 'us-esat-1' is not known to this version; did you mean 'us-east-1'?"
    )
    assert pipeline(job("one"), region="us-east-1").warnings() == []


@pytest.mark.parametrize(
    ("last", "problem"),
    [
        (in_python("b"), "expected a list of stages, got the stage 'b' alone; write [<the stage>]"),
        ("b", "expected a mapping from names to stages, or a list, got 'b'"),
    ],
)
def test_one_stage_is_no_list_of_stages(last: Any, problem: str) -> None:
    with pytest.raises(PipelineError) as error:
        pipeline(tells("a"), always=last)
    assert [str(each) for each in error.value.problems] == [f"always: {problem}"]


def test_a_stage_is_no_value() -> None:
    with pytest.raises(PipelineError) as error:
        Pipeline(name="p", workspace="s3://b/p", stages=[in_python(), in_python("b", in_python())])
    assert [str(each) for each in error.value.problems] == [
        "stages.b.request.Message: is the stage 'a'; refer to one of its outputs: message"
    ]


def test_a_misspelt_output_is_recognised_in_python() -> None:
    with pytest.raises(AttributeError, match="no output 'messag'; did you mean 'message'"):
        _ = in_python().outputs.messag


def test_a_misspelt_service_is_recognised() -> None:
    with pytest.raises(PipelineError) as error:
        pipeline({**tells("a"), "service": "snss"})
    assert [str(each) for each in error.value.problems] == [
        "stages.a.service: botocore knows no service 'snss'; did you mean 'sns'?"
    ]


def test_a_stage_that_reads_itself_is_named() -> None:
    with pytest.raises(PipelineError) as error:
        pipeline(job("a", hyperparameters={"x": {"ref": "a.model_artifacts"}}))
    assert [str(each) for each in error.value.problems] == [
        "stages.a.hyperparameters.x: is an output of the stage itself, known only at its end"
    ]


def test_kinds_come_from_modules_and_classes() -> None:
    with pytest.raises(TypeError, match="expected a module, its name or a class, got None"):
        Kinds.of([None])  # type: ignore[list-item]  # what is tested


def test_an_endpoint_that_shall_wait_for_machines_is_told_what_becomes_of_it() -> None:
    stage = {"name": "a", "kind": "deployment", "model_data": "s3://b/m/", "image": "i"}
    with pytest.raises(PipelineError) as error:
        pipeline({**stage, "instance_type": "ml.m5.large", "wait_for_capacity_h": 3})
    (problem,) = error.value.problems
    assert str(problem).startswith(
        "stages.a.wait_for_capacity_h: is unknown here: an endpoint is requested once. A new one "
        "without machines is Failed"
    )


def found(**stage: Any) -> dict[str, str]:
    data = {"name": "p", "workspace": "s3://b/w", "stages": {"one": stage}}
    with pytest.raises(PipelineError) as error:
        Pipeline.parse(data)
    problems = error.value.problems
    return {problem.path.removeprefix("stages.one."): problem.message for problem in problems}


TRAINING: dict[str, Any] = {
    "kind": "training_job",
    "image": "image",
    "cluster": {"instance_type": "ml.m5.large"},
}


def test_a_value_that_makes_a_job_impossible_hides_no_other_mistake() -> None:
    wrong = found(
        **TRAINING,
        max_runtime_s=-1,
        channels={"train": "bucket/train"},
        output={"uri": "bucket/out"},
        after=["nobody"],
        tags={"aws:team": "vision"},
    )
    assert set(wrong) == {
        "max_runtime_s",
        "channels.train.uri",
        "output.uri",
        "after",
        "tags.aws:team",
    }


def test_nothing_is_said_of_a_default_in_the_place_of_a_wrong_value() -> None:
    # A wait of 3600 s is less than the default of max_runtime_s.
    wrong = found(**TRAINING, max_runtime_s=-1, spot={"max_wait_s": 3600}, checkpoints={})
    assert set(wrong) == {"max_runtime_s"}


@pytest.mark.parametrize("short", [True, False])
def test_a_case_that_does_not_parse_hides_none_that_is_wrong(short: bool) -> None:
    cases = [{"body": 1}, *({"request": 1, "status": status} for status in (302, 200, "x"))]
    wrong = found(
        kind="deployment",
        image="image",
        model_data="bucket/model",
        instance_type="ml.m5.large",
        update={"trial": cases if short else {"cases": cases}},
    )
    places = {re.sub(r"update\.trial(\.cases)?", "", field) for field in wrong}
    assert places == {"[0].request", "[0].body", "[1].status", "[3].status", "model_data"}


DEPLOYMENT: dict[str, Any] = {
    "kind": "deployment",
    "image": "image",
    "model_data": "s3://bucket/model/",
    "model_archive": True,
    "instance_type": "ml.m5.large",
}


@pytest.mark.parametrize("given", [5, {"reff": "train.model"}, {"ref": -1}])
def test_nothing_is_advised_where_a_wrong_value_leaves_a_field_empty(given: Any) -> None:
    # Without data of its own a deployment is one of a registered version, which has its own image.
    assert set(found(**{**DEPLOYMENT, "model_data": given})) == {"model_data"}


def test_a_mapping_that_can_not_be_read_is_not_taken_for_an_empty_one() -> None:
    batch = {"per_replica": "batch_size"}
    wrong = found(**TRAINING, hyperparameters=-1, batch=batch)
    assert set(wrong) == {"hyperparameters"}


def test_a_wrong_value_with_a_default_hides_no_other_mistake_in_an_object() -> None:
    cluster = {**TRAINING["cluster"], "volume_gib": "much"}
    wrong = found(**{**TRAINING, "cluster": cluster}, output={"uri": "bucket/out"})
    assert set(wrong) == {"cluster.volume_gib", "output.uri"}


@pytest.mark.parametrize(
    ("stage", "key", "field"),
    [
        (
            {"kind": "deployment", "image": "serving:1", "model_data": "s3://b/model/"},
            "instnce_type",
            "instance_type",
        ),
        (
            {"kind": "deployment", "instance_type": "ml.m5.large", "image": "serving:1"}
            | {"model_data": "s3://b/model.tar.gz"},
            "model_archve",
            "model_archive",
        ),
        ({"kind": "training_job", "image": "training:1"}, "clster", "cluster"),
        ({"kind": "aws_call", "operation": "ListBuckets"}, "servce", "service"),
    ],
)
def test_a_misspelt_key_is_the_only_problem_that_it_makes(
    stage: dict[str, Any], key: str, field: str
) -> None:
    given = {"instnce_type": "ml.m5.large", "model_archve": True, "servce": "s3"}
    value = given.get(key, {"instance_type": "ml.m5.large"})
    description = {"name": "x", "region": "us-east-1", "workspace": "s3://b/x"}
    with pytest.raises(PipelineError) as raised:
        Pipeline.parse({**description, "stages": {"one": {**stage, key: value}}})
    assert str(raised.value) == f"stages.one.{key}: is unknown; did you mean '{field}'?"


def test_a_key_that_may_mean_two_fields_hides_neither() -> None:
    wrong = found(kind="processing_job", image="image", cluster={"instance": 2})
    assert set(wrong) == {"cluster.instance", "cluster.instance_type"}


def test_a_key_that_only_begins_like_a_field_is_not_taken_for_it() -> None:
    description = {"name": "x", "region": "us-east-1", "workspace": "s3://b/x"}
    stage = {"kind": "processing_job", "image": "processing:1", "output": {"ref": "zz.q"}}
    with pytest.raises(PipelineError) as raised:
        Pipeline.parse({**description, "stages": {"one": stage}})
    assert "output_kms_key:" not in str(raised.value)
