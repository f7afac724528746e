"""Fields said once for several stages: merged as written, refused at the place that says them."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestration import CheckpointEvaluation, Pipeline, PipelineError, TrainingJob
from orchestration.pipeline import files
from orchestration.pipeline.defaults.merging import merged
from orchestration.pipeline.pinning.lock_file import lock_path

Data = dict[str, Any]
IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/pytorch:2"
SHARED: Data = {
    "for": ["train", "evaluate"],
    "image": IMAGE,
    "source": {"directory": "src", "sha256": "0" * 64},
    "tags": {"team": "vision"},
    "vpc": {"subnets": ["subnet-1"], "security_groups": ["sg-1"]},
}
STAGES: Data = {
    "train": {
        "kind": "training_job",
        "source": {"entry_point": "train.py"},
        "cluster": {"instance_type": "ml.m5.xlarge"},
        "tags": {"step": "1"},
    },
    "evaluate": {
        "kind": "checkpoint_evaluation",
        "model": {"ref": "train.model_artifacts"},
        "data": "s3://bucket/holdout",
        "source": {"entry_point": "evaluate.py"},
        "instance_type": "ml.m5.xlarge",
        "metric": "accuracy",
        "direction": "max",
    },
}


def data(*defaults: Any, **stages: Data) -> Data:
    changed = {name: {**stage, **stages.get(name, {})} for name, stage in STAGES.items()}
    role = "arn:aws:iam::111122223333:role/Execution"
    around = {"name": "p", "workspace": "s3://bucket/p", "role": role, "region": "us-east-1"}
    return deepcopy({**around, "defaults": list(defaults or [SHARED]), "stages": changed})


def problems(written: Data) -> list[str]:
    with pytest.raises(PipelineError) as refused:
        Pipeline.parse(written)
    return [str(problem) for problem in refused.value.problems]


def test_stages_take_what_they_lack_and_keep_their_own() -> None:
    train, evaluate = Pipeline.parse(data()).stages
    assert isinstance(train, TrainingJob)
    assert isinstance(evaluate, CheckpointEvaluation)
    assert train.image == evaluate.image == IMAGE
    assert train.source is not None
    assert (train.source.directory, train.source.entry_point) == ("src", "train.py")
    assert train.tags == {"team": "vision", "step": "1"}
    assert evaluate.tags == {"team": "vision"}
    assert evaluate.vpc == train.vpc


def test_a_pipeline_with_defaults_is_the_one_written_out() -> None:
    out = data()
    del out["defaults"]
    for stage in out["stages"].values():
        stage["source"] |= SHARED["source"]
        stage["tags"] = {**SHARED["tags"], **stage.get("tags", {})}
        stage |= {"image": IMAGE, "vpc": SHARED["vpc"]}
    assert Pipeline.parse(data()) == Pipeline.parse(out)


@pytest.mark.parametrize(
    ("shared", "own", "expected"),
    [
        ({"parameter": "a"}, {"ref": "x.y"}, {"ref": "x.y"}),
        ({"kind": "s3", "uri": "s3://b"}, {"parameter": "all"}, {"parameter": "all"}),
        ({"parameter": "all"}, {"kind": "s3"}, {"kind": "s3"}),
        ({"equal": [{"parameter": "a"}, 1]}, {"parameter": "b"}, {"parameter": "b"}),
        ({"run": "nightly"}, {"team": "z"}, {"run": "nightly", "team": "z"}),
        ({"A": "1"}, {"not": "x"}, {"A": "1", "not": "x"}),
        ({"less": "1"}, {"all": "x"}, {"less": "1", "all": "x"}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ({"a": [1, 2]}, {"a": [3]}, {"a": [3]}),
        ({"kind": "s3", "uri": "s3://b"}, {"kind": "fsx"}, {"kind": "fsx"}),
        ({"uri": "s3://b"}, {"kind": "s3"}, {"kind": "s3", "uri": "s3://b"}),
        ({"a": 1}, None, None),
        ({"a": 1}, {}, {"a": 1}),
        ("shared", "own", "own"),
    ],
)
def test_a_stage_s_own_value_wins(shared: Any, own: Any, expected: Any) -> None:
    stages = {"x": {"field": own}, "y": {}}
    written = {"stages": stages, "defaults": [{"for": ["x", "y"], "field": shared}]}
    both = merged(written)
    assert both.data == {"stages": {"x": {"field": expected}, "y": {"field": shared}}}
    assert stages == {"x": {"field": own}, "y": {}}, "what was given is left as it is"


@pytest.mark.parametrize(
    ("shared", "own"),
    [
        ({"run": "id"}, {"team": "z"}),
        ({"run": "id"}, {}),
        ({"a": 1, "b": 2}, {"parameter": "all"}),
        ({"A": "1"}, {"not": {"parameter": "x"}}),
    ],
)
def test_a_mapping_that_may_be_a_reference_is_refused(shared: Data, own: Data) -> None:
    both = merged({"stages": {"x": {"f": own}}, "defaults": [{"for": ["x"], "f": shared}]})
    [problem] = both.problems
    assert problem.path == "defaults[0].f"
    assert f"stage x has {own!r} for it, and only one of the two reads as a ref" in problem.message
    assert both.data == {"stages": {"x": {"f": own}}}


def test_stages_that_share_an_alias_are_merged_apart() -> None:
    text = "defaults: [{for: [x], f: {b: 2}}]\nstages: {x: {f: &f {a: 1}}, y: {f: *f}}\n"
    both = merged(yaml.safe_load(text))
    assert both.data["stages"] == {"x": {"f": {"a": 1, "b": 2}}, "y": {"f": {"a": 1}}}


def test_what_is_wrong_is_told_where_it_is_written_and_once() -> None:
    image = IMAGE.replace("us-east-1", "eu-west-1")
    [problem] = problems(data({**SHARED, "image": image}))
    assert problem.startswith("defaults[0].image: is in eu-west-1")
    assert problem.endswith("(in stages train and evaluate)")


def test_the_rest_of_a_stage_is_told_at_the_stage() -> None:
    found = problems(data(train={"source": {}, "tgas": {}}))
    assert [text.partition(":")[0] for text in found] == [
        "stages.train.source.entry_point",
        "stages.train.tgas",
    ]


def test_a_field_that_a_kind_does_not_have_is_told_with_the_stage() -> None:
    [problem] = problems(data({**SHARED, "metric": "accuracy"}))
    assert problem.startswith("defaults[0].metric: is unknown")
    assert "(in stage train)" in problem


@pytest.mark.parametrize(
    ("defaults", "expected"),
    [
        (["image"], "defaults[0]: expected a mapping with for and fields of stages, got 'image'"),
        ([{**SHARED, "for": "train"}], "defaults[0].for: expected a list of stages' names"),
        (
            [{**SHARED, "for": [1]}],
            "defaults[0].for: expected a stage's name, which is text, got 1",
        ),
        ([{"for": ["train"]}], "defaults[0]: has no fields beside for"),
        ([{**SHARED, "for": ["trian"]}], "there is no stage 'trian'; did you mean 'train'?"),
        ([{**SHARED, "kind": "training_job"}], "defaults[0].kind: each stage has its own; remove"),
        (
            [SHARED, {"for": ["train"], "tags": {"team": "x"}}],
            "defaults[1].tags.team: stage train has it from defaults[0].tags.team",
        ),
        (
            [SHARED, {"for": ["train"], "tags": {"step": "2"}}],
            "defaults[1].tags.step: no stage takes it: each has its own; remove it",
        ),
    ],
)
def test_defaults_themselves_are_refused(defaults: list[Any], expected: str) -> None:
    assert any(expected in problem for problem in problems(data(*defaults)))


def test_stages_are_given_by_names_that_are_text() -> None:
    written = {"stages": {1: {"kind": "pause"}}, "defaults": [{"for": [1], "after": []}]}
    [problem] = merged(written).problems
    assert str(problem) == "defaults[0].for: expected a stage's name, which is text, got 1"


def test_defaults_are_a_list() -> None:
    [problem, *_] = problems({**data(), "defaults": {"image": IMAGE}})
    assert problem.startswith("defaults: expected a list of mappings with for, got {'image'")


def test_a_mistake_in_the_defaults_hides_none_in_the_stages() -> None:
    wrong = data(SHARED, {"for": ["deploy"], "image": IMAGE}, evaluate={"direction": "up"})
    found = [text.partition(":")[0] for text in problems(wrong)]
    assert found == ["defaults[1].for", "stages.evaluate.direction"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    for name in ("train.py", "evaluate.py"):
        (tmp_path / "src" / name).write_text("print(1)\n", encoding="utf-8")
    shared = {**SHARED, "source": {"directory": "src"}}
    (tmp_path / "p.yaml").write_text(
        yaml.safe_dump(data(shared), sort_keys=False), encoding="utf-8"
    )
    return tmp_path / "p.yaml"


def test_shared_code_is_locked_for_each_stage(path: Path) -> None:
    locked = files.lock(path)["sources"]
    assert locked.keys() == {"train.source", "evaluate.source"}
    lock_path(path).write_text(json.dumps({"sources": locked}), encoding="utf-8")
    train, evaluate = Pipeline.load(path).stages
    assert isinstance(train, TrainingJob)
    assert isinstance(evaluate, CheckpointEvaluation)
    assert train.source is not None
    assert evaluate.source is not None
    assert train.source.sha256 == evaluate.source.sha256 == locked["train.source"]
    assert files.stale(path) == []


def test_code_that_is_missing_is_told_where_it_is_written(path: Path) -> None:
    (path.parent / "src").rename(path.parent / "other")
    for read in (Pipeline.load, files.lock):
        with pytest.raises(PipelineError) as refused:
            read(path)
        [problem] = refused.value.problems
        assert problem.path.startswith("defaults[0].source.directory")
        assert "stages train and evaluate" in problem.message


def test_a_nested_pipeline_has_its_own_defaults(path: Path) -> None:
    nested = {"kind": "pipeline", "file": "p.yaml"}
    around = {**data(), "name": "outer", "stages": {"sub": nested}}
    del around["defaults"]
    (path.parent / "outer.yaml").write_text(yaml.safe_dump(around), encoding="utf-8")
    train, _ = Pipeline.load(path.parent / "outer.yaml").stages
    assert isinstance(train, TrainingJob)
    assert train.image == IMAGE


def test_a_nested_pipeline_takes_no_defaults_from_around(path: Path) -> None:
    nested = {"kind": "pipeline", "file": "p.yaml"}
    around = {**data({"for": ["sub"], "image": IMAGE}), "stages": {"sub": nested}}
    (path.parent / "outer.yaml").write_text(yaml.safe_dump(around), encoding="utf-8")
    with pytest.raises(PipelineError, match=r"defaults\[0\]\.image: is unknown; .*stage sub"):
        Pipeline.load(path.parent / "outer.yaml")
