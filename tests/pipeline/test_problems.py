"""Every mistake at once, each with its path, what is wrong and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline, PipelineError
from orchestration.stages.values import s3_problem
from tests.pipeline.building import (
    Data,
    deployment,
    evaluation,
    exporting,
    job,
    lustre,
    pipeline,
    reader,
    writer,
)

BAD = Path(__file__).parent / "bad.yaml"


def found(*stages: Data, **further: Any) -> dict[str, str]:
    """What is wrong, by path."""
    with pytest.raises(PipelineError) as error:
        pipeline(*stages, **further)
    paths = [problem.path for problem in error.value.problems]
    assert len(paths) == len(set(paths)), "one problem for each path"
    return {problem.path: problem.message for problem in error.value.problems}


def test_a_file_with_many_mistakes_has_all_of_them_reported_in_words() -> None:
    with pytest.raises(PipelineError) as error:
        Pipeline.load(BAD)
    expected = BAD.with_suffix(".txt").read_text(encoding="utf-8")
    assert f"{error.value}\n" == expected


HERE, ELSEWHERE = (
    f"111122223333.dkr.ecr.{region}.amazonaws.com/training:1"
    for region in ("eu-west-1", "us-east-1")
)


def test_an_image_of_another_region_is_refused_before_anything_is_paid_for() -> None:
    by_default = {**job("later"), "image": {"parameter": "image"}}
    problems = found(
        job("train", image=ELSEWHERE),
        by_default,
        region="eu-west-1",
        parameters={"image": {"default": ELSEWHERE}},
    )
    message = (
        "is in us-east-1, but the pipeline runs in eu-west-1, and SageMaker pulls images from its "
        "own region only; copy the image there, or change the pipeline's region"
    )
    assert problems == {
        "stages.train.image": message,
        "stages.later.image": f"{message} (so by the parameters' defaults)",
    }


@pytest.mark.parametrize("image", [HERE, "registry.example.com/training:1"])
def test_an_image_of_the_region_or_of_a_registry_of_ones_own_is_taken(image: str) -> None:
    assert pipeline(job("train", image=image), region="eu-west-1").region == "eu-west-1"


ARTIFACTS = {"ref": "a.model_artifacts"}
EITHER = {"first_of": [{"ref": "b.model_artifacts"}, ARTIFACTS]}


def test_a_packed_model_that_was_evaluated_is_still_packed() -> None:
    judge = {**evaluation("judge", "a"), "model": ARTIFACTS}
    del judge["checkpoints"]
    serving = {**deployment("d", "judge"), "model_data": {"ref": "judge.model"}}
    problems = found(job("a"), judge, serving)
    assert problems["stages.d.model_data"].endswith("is a model.tar.gz; give model_archive: true")


@pytest.mark.parametrize(("data", "named"), [(ARTIFACTS, "a"), (EITHER, "b")])
@pytest.mark.parametrize("kind", ["deployment", "batch_transform"])
def test_a_packed_model_is_said_to_be_one_before_its_training_is_paid_for(
    kind: str, data: Data, named: str
) -> None:
    serving: Data = {"kind": kind, "name": "s", "image": ELSEWHERE, "instance_type": "ml.m5.large"}
    serving |= {"model_data": data} | ({} if kind == "deployment" else {"data": "s3://d/rows"})
    when = {"equal": [{"parameter": "mode"}, "full"]}
    jobs = (job("a", when={"not": when}), job("b", when=when))
    modes: Data = {"parameters": {"mode": {}}}
    assert found(*jobs, serving, **modes) == {
        "stages.s.model_data": (
            f"model_artifacts of '{named}' is a model.tar.gz; give model_archive: true"
        )
    }
    packed = pipeline(*jobs, {**serving, "model_archive": True}, **modes)
    assert packed.lower().graph.steps


BOTH = {"entry_point": "a.py", "directory": "src", "archive": "a.tar.gz"}


@pytest.mark.parametrize(
    ("wrong", "path", "message"),
    [
        ({"instance_cuont": 2}, "cluster.instance_cuont", "did you mean 'instance_count'?"),
        ({"instance_count": 0}, "cluster.instance_count", "a whole number from 1 on"),
        ({"instance_count": True}, "cluster.instance_count", "a whole number from 1 on"),
        ({"instance_count": "2"}, "cluster.instance_count", "a whole number from 1 on"),
        ({"instance_count": {"parametr": "n"}}, "cluster.instance_count", "mean 'parameter'?"),
        ({"volume_gib": "30"}, "cluster.volume_gib", "expected a whole number"),
        ({"instance_type": 5}, "cluster.instance_type", "put it in quotes"),
    ],
)
def test_one_field_gives_one_message(wrong: Data, path: str, message: str) -> None:
    cluster = {"instance_type": "ml.m5.xlarge", **wrong}
    problems = found(job("train", cluster=cluster))
    assert list(problems) == [f"stages.train.{path}"]
    assert message in problems[f"stages.train.{path}"]


@pytest.mark.parametrize(
    ("further", "path", "message"),
    [
        ({"hyperparameters": {"a": [1]}}, "hyperparameters.a", "write a list as the text"),
        ({"hyperparameters": {"a": None}}, "hyperparameters.a", "text, a number, true or false"),
        ({"hyperparameters": {"a": float("nan")}}, "hyperparameters.a", "no number"),
        ({"hyperparameters": {"sagemaker_x": 1}}, "hyperparameters.sagemaker_x", "toolkit's"),
        ({"environment": {"A": True}}, "environment.A", "put it in quotes"),
        ({"strategy": {"kind": "mpl"}}, "strategy", "did you mean 'mpi'?"),
        ({"strategy": {}}, "strategy", "give it one of kind: "),
        ({"max_runtime_s": 0}, "max_runtime_s", "is 0; the least is 1"),
        ({"max_runtime_s": 30 * 86_400}, "max_runtime_s", "the most is 2419200"),
        ({"input_mode": "Fast"}, "input_mode", "expected 'File', 'FastFile' or 'Pipe'"),
        ({"channels": {"a": {"kind": "s3"}}}, "channels.a.uri", "is required"),
        ({"channels": {"none": {"kind": "s3", "uri": 5}}}, "channels.none.uri", "got 5"),
        ({"channels": {"a": "bucket/x"}}, "channels.a.uri", "write s3://bucket/prefix"),
        ({"channels": {"a": "s3://${bucket}/x"}}, "channels.a.uri", "write {join: ['s3://', "),
        ({"channels": {"a": "s3://{{bucket}}"}}, "channels.a.uri", "no bucket can be called so"),
        ({"channels": {"a": "s3://bücket/a"}}, "channels.a.uri", "no bucket can be called so"),
        ({"channels": {"a": "s3://a,b/c"}}, "channels.a.uri", "no bucket can be called so"),
        ({"checkpoints": {"uri": "s3:/x"}}, "checkpoints.uri", "write s3://bucket/prefix"),
        ({"after": ["trian"]}, "after", "there is no stage 'trian'; did you mean 'train'?"),
        ({"spot": {"max_wait_s": 60}}, "spot.max_wait_s", "is less than max_runtime_s"),
        ({"extra_request": {"RoleArn": "x"}}, "extra_request", "is already set"),
        ({"source": {"entry_point": "a.py"}}, "source", "needs a directory"),
        ({"source": {"entry_point": "a.py", "uri": "b/x"}}, "source.uri", "write s3://"),
        ({"source": {"entry_point": "a.py", "uri": "s3://b/x/"}}, "source.uri", "the slash"),
        (
            {"source": {"entry_point": "a.py", "uri": "s3://b/x", "directory": "src"}},
            "source",
            "takes one of directory and uri",
        ),
        (
            {"source": {**BOTH, "sha256": "0" * 64}},
            "source",
            "takes one of directory and archive",
        ),
        ({"tags": {"aws:x": "y"}}, "tags.aws:x", "are AWS's own"),
        ({"tags": {"orchestration:run": "y"}}, "tags.orchestration:run", "finds what a run made"),
        (
            {"source": {"entry_point": "a.py", "directory": "/none"}},
            "source.directory",
            "orchestrate lock",
        ),
        ({"vpc": {"subnets": [], "security_groups": ["sg"]}}, "vpc.subnets", "has 0 entries"),
    ],
)
def test_mistakes_in_a_training_job(further: Data, path: str, message: str) -> None:
    problems = found(job("train", **further))
    assert list(problems) == [f"stages.train.{path}"]
    assert message in problems[f"stages.train.{path}"]


@pytest.mark.parametrize(
    ("destination", "path", "message"),
    [
        ({"storage_capacity_gib": 3600}, "storage_capacity_gib", "1200 or a multiple of 2400"),
        ({"storage_capacity_gib": 1300}, "storage_capacity_gib", "a multiple of 1200"),
        ({"deployment_type": "PERSISTENT_2"}, "throughput_mbps_per_tib", "is required for"),
        ({"throughput_mbps_per_tib": 125}, "throughput_mbps_per_tib", "PERSISTENT_2 only"),
        ({"extra_request": {"Tags": []}}, "extra_request", "is already set"),
        ({"mount_path": "data"}, "mount_path", "expected text that matches"),
    ],
)
def test_mistakes_in_a_file_system(destination: Data, path: str, message: str) -> None:
    stage = lustre("fs")
    stage["destination"] |= destination
    problems = found(stage)
    assert list(problems) == [f"stages.fs.destination.{path}"]
    assert message in problems[f"stages.fs.destination.{path}"]


@pytest.mark.parametrize(
    ("stages", "path", "message"),
    [
        ([job("a"), evaluation("e", "trian")], "stages.e.checkpoints", "no stage 'trian'"),
        (
            [job("a", checkpoints=None), evaluation("e", "a")],
            "stages.e.checkpoints",
            "give it checkpoints: {}",
        ),
        (
            [job("a"), deployment("d", "a")],
            "stages.d.model_data",
            "stage 'a' has no output 'best_checkpoint'; did you mean 'checkpoints'?",
        ),
        (
            [reader("r", "s"), {**lustre("s"), "destination": {"kind": "s3"}}],
            "stages.r.channels.s.file_system",
            "so use location",
        ),
        (
            [lustre("s"), job("r", channels={"x": {"ref": "s.location"}})],
            "stages.r.channels.x.uri",
            "so use file_system",
        ),
        ([job("a", image={"parameter": "imag"})], "stages.a.image", "no parameter 'imag'"),
        ([job("a"), job("a")], "stages.a", "2 stages have this name"),
        ([job("a", after=["a"])], "stages", "wait for each other: a -> a"),
        (
            [job("a", after=["c"]), job("b", after=["a"]), job("c", after=["b"]), job("d")],
            "stages",
            "wait for each other: a -> c -> b -> a",
        ),
    ],
)
def test_mistakes_between_stages(stages: list[Data], path: str, message: str) -> None:
    problems = found(*stages)
    assert list(problems) == [path]
    assert message in problems[path]


RESULTS = "no job can write to /results: no channel with access: rw mounts it"


@pytest.mark.parametrize(
    ("stage", "message"),
    [
        (reader("train", "fs"), RESULTS),
        (writer("train", "fs", path="/data"), RESULTS),
        (writer("train", "other"), RESULTS),
    ],
)
def test_an_export_of_what_nobody_can_write_is_a_mistake(stage: Data, message: str) -> None:
    problems = found(exporting("fs", "/results"), exporting("other"), stage)
    assert message in problems["stages.fs.destination.export[0]"]


@pytest.mark.parametrize("path", ["/results", "/results/run", ""])
def test_a_channel_that_holds_the_directory_or_lies_in_it_can_write_there(path: str) -> None:
    pipeline(exporting("fs", "/results"), writer("train", "fs", path=path))


def test_what_is_exported_is_known_too_late_for_other_stages() -> None:
    late = job("late", hyperparameters={"files": {"ref": "fs.exported_files"}})
    problems = found(exporting("fs", "/results"), writer("train", "fs"), late)
    message = problems["stages.late.hyperparameters.files"]
    assert "no stage can refer to 'exported_files' of 'fs'" in message


def test_a_stage_that_can_not_be_read_hides_nothing_of_the_others() -> None:
    broken = job("broken", max_runtime_s=0, image={"parameter": "imag"}, after=["nowhere"])
    problems = found(broken, evaluation("e", "broken"), deployment("d", "evaluate"), job("x" * 31))
    assert set(problems) == {
        "stages.broken.max_runtime_s",
        "stages.broken.image",
        "stages.broken.after",
        "stages.d.model_data",
        f"stages.{'x' * 31}.name",
    }


def test_what_aws_would_refuse_is_reported_beside_other_mistakes() -> None:
    problems = found(job("a", image="x" * 300), job("b", after=["nowhere"]))
    assert problems["stages.b.after"].startswith("there is no stage 'nowhere'")
    assert "TrainingImage: has 300 characters; the most is 255" in problems["stages.a"]


@pytest.mark.parametrize(
    ("further", "path", "message"),
    [
        ({"name": "My_Pipeline"}, "name", "lower-case letters, digits and single hyphens"),
        ({"workspace": "bucket/x"}, "workspace", "write s3://bucket/prefix"),
        ({"workspace": "s3://bucket/x/"}, "workspace", "leave the slash at its end away"),
        ({"workspace": {"ref": "a.checkpoints"}}, "workspace", "known too late"),
        ({"role": {"parameter": "rol"}}, "role", "there is no parameter 'rol'"),
        ({"tags": {"aws:x": "y"}}, "tags.aws:x", "AWS's own"),
        ({"tags": {"Orchestration:run": "y"}}, "tags.Orchestration:run", "finds what a run made"),
        ({"tags": {"team": "R&D"}}, "tags.team", "is 'R&D', and AWS takes letters, digits"),
        ({"tags": {"to,do": "x"}}, "tags.to,do", "the key is 'to,do', and AWS takes letters"),
        ({"tags": {"k": "x" * 257}}, "tags.k", "has 257 characters; the most is 256"),
        ({"tags": {"k" * 129: "x"}}, f"tags.{'k' * 129}", "has 129 characters; the most is 128"),
        ({"tags": {"": "x"}}, "tags", "a key has one character at least"),
        ({"tags": {"Team": "a", "team": "b"}}, "tags.team", "differs from 'Team' by case alone"),
        ({"tags": {"n": 3}}, "tags.n", "expected text"),
        ({"stages": []}, "stages", "has 0 entries; the least is 1"),
        ({"stages": {"a": "oops"}}, "stages.a", "expected a mapping with a kind"),
        ({"stages": {"a": job("b")}}, "stages.a", "has another name in it: 'b'"),
        (
            {"parameters": {"n": {"type": "number", "default": "x"}}},
            "parameters.n",
            "expected a number as the default",
        ),
        ({"parameters": {"n": {"type": "int"}}}, "parameters.n.type", "'boolean'"),
        ({"schedule": {"cron": "0 6 * *"}}, "schedule.cron", "has 4 fields"),
        (
            {"schedule": {"cron": "0 6 * * *", "parameters": {"n": 1}}},
            "schedule.parameters.n",
            "no such parameter",
        ),
    ],
)
def test_mistakes_of_the_pipeline_itself(further: Data, path: str, message: str) -> None:
    problems = found(job("a"), **further)
    assert path in problems
    assert message in problems[path]


def test_a_scheduled_value_has_the_parameters_type() -> None:
    schedule = {"cron": "0 6 * * *", "parameters": {"n": "3"}}
    problems = found(job("a"), parameters={"n": {"type": "number"}}, schedule=schedule)
    assert problems == {"schedule.parameters.n": "is '3', and the parameter is a number"}


def test_a_parameter_has_the_type_that_aws_takes() -> None:
    cluster = {"instance_type": "ml.m5.xlarge", "instance_count": {"parameter": "n"}}
    problems = found(job("a", cluster=cluster), parameters={"n": {}})
    assert "declare it with type: number" in problems["stages.a"]


@pytest.mark.parametrize("system", [{"parameter": "p"}, {"ref": "other.checkpoints"}])
def test_only_a_staging_stage_has_a_file_system(system: Data) -> None:
    stage = reader("r")
    stage["channels"] = {"x": {"kind": "fsx_lustre", "file_system": system}}
    problems = found(job("other"), stage, parameters={"p": {}})
    assert "{ref: <stage>.file_system}" in problems["stages.r.channels.x.file_system"]


@pytest.mark.parametrize("bucket", ["My_Bucket.1", "arn:aws:s3:us-east-1:1:accesspoint/a"])
def test_buckets_from_before_2018_and_access_points_are_named(bucket: str) -> None:
    assert list(s3_problem("data", f"s3://{bucket}/é,x")) == []
