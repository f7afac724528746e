"""Pipelines in pipelines: the stages of another file, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestration import Pipeline, PipelineError
from orchestration.backends import locks, stepfunctions
from orchestration.backends.airflow import locking
from orchestration.backends.airflow.spec import DagSpec
from orchestration.backends.locking import with_renderings
from orchestration.graph import Concluded, ForEach
from orchestration.pipeline import files
from orchestration.refs import Parameter, Ref, RunOutcome
from tests.guides import NESTED_PIPELINES, shown

Data = dict[str, Any]
NEWS = "arn:aws:sns:us-east-1:111122223333:news"


def tells(message: Any, **further: Any) -> Data:
    return {
        "kind": "aws_call",
        "service": "sns",
        "operation": "Publish",
        "request": {"TopicArn": NEWS, "Message": message},
        "results": {"message": "MessageId"},
        **further,
    }


INNER: Data = {
    "name": "inner",
    "workspace": "s3://other/inner",
    "parameters": {"text": {}, "mode": {"default": "full"}},
    "stages": {
        "first": tells({"parameter": "text"}, when={"equal": [{"parameter": "mode"}, "full"]}),
        "then": tells({"join": ["after ", {"ref": "first.message"}]}, after=["first"]),
    },
}
GIVEN: Data = {"kind": "pipeline", "file": "inner.yaml", "parameters": {"text": "hello"}}


def outer(*, stages: Data | None = None, **further: Any) -> Data:
    return {
        "name": "outer",
        "workspace": "s3://bucket/outer",
        "parameters": {"words": {}, "many": {"type": "number"}},
        "stages": {"sub": GIVEN, "last": tells({"ref": "sub_then.message"}, after=["sub"])}
        if stages is None
        else stages,
        **further,
    }


def written(folder: Path, **documents: Data) -> Path:
    for name, document in documents.items():
        path = folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return folder / "outer.yaml"


def refused(path: Path) -> list[str]:
    with pytest.raises(PipelineError) as error:
        Pipeline.load(path)
    return [str(problem) for problem in error.value.problems]


def test_stages_of_the_file_are_stages_of_the_pipeline(tmp_path: Path) -> None:
    pipeline = Pipeline.load(written(tmp_path, inner=INNER, outer=outer()))
    first, then, last = pipeline.stages
    assert [stage.name for stage in pipeline.stages] == ["sub_first", "sub_then", "last"]
    assert Parameter("sub_mode") in {node for _, node in first.references()}
    assert Ref("sub_first", "message") in {node for _, node in then.references()}
    assert (then.after, last.after) == (("sub_first",), ("sub_first", "sub_then"))
    defaults = {name: each.default for name, each in pipeline.parameters.items()}
    assert defaults == {"words": None, "many": None, "sub_text": "hello", "sub_mode": "full"}


def test_a_reference_stands_for_a_parameter(tmp_path: Path) -> None:
    given = {**GIVEN, "parameters": {"text": {"parameter": "words"}, "mode": {"run": "id"}}}
    pipeline = Pipeline.load(written(tmp_path, inner=INNER, outer=outer(stages={"sub": given})))
    assert Parameter("words") in {node for _, node in pipeline.stages[0].references()}
    assert set(pipeline.parameters) == {"words", "many"}


def test_its_when_and_after_count_for_each_of_its_stages(tmp_path: Path) -> None:
    when = {"equal": [{"parameter": "words"}, "go"]}
    stages = {"before": tells("b"), "sub": {**GIVEN, "when": when, "after": ["before"]}}
    pipeline = Pipeline.load(written(tmp_path, inner=INNER, outer=outer(stages=stages)))
    for stage in pipeline.stages[1:]:
        assert "before" in stage.after
        assert Parameter("words") in {n for path, n in stage.references() if path == "when"}


def test_a_pipeline_may_follow_the_end_of_a_run(tmp_path: Path) -> None:
    note = {**GIVEN, "parameters": {"text": {"outcome": "error"}}}
    document = outer(stages={"a": tells("a")}, on_failure={"sub": note})
    pipeline = Pipeline.load(written(tmp_path, inner=INNER, outer=document))
    assert [stage.name for stage in pipeline.on_failure] == ["sub_first", "sub_then"]
    [first] = (stage for stage in pipeline.on_failure if stage.name == "sub_first")
    assert RunOutcome("error") in {node for _, node in first.references()}
    [step] = pipeline.lower().graph.steps
    assert isinstance(step, Concluded)


def test_pipelines_nest_and_may_stand_in_lists(tmp_path: Path) -> None:
    middle = {**INNER, "name": "middle", "stages": [{**GIVEN, "name": "deep"}]}
    stages = [{**GIVEN, "name": "sub", "file": "middle.yaml"}]
    path = written(tmp_path, inner=INNER, middle=middle, outer=outer(stages=stages))  # type: ignore[arg-type]  # a list
    names = [stage.name for stage in Pipeline.load(path).stages]
    assert names == ["sub_deep_first", "sub_deep_then"]


def test_code_is_found_beside_its_own_file_and_locked_here(tmp_path: Path) -> None:
    code = tmp_path / "nested" / "src"
    code.mkdir(parents=True)
    (code / "train.py").write_text("print(1)\n", encoding="utf-8")
    train = {
        "kind": "training_job",
        "image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1",
        "source": {"directory": "src", "entry_point": "train.py"},
        "cluster": {"instance_type": "ml.m5.xlarge"},
    }
    before = {"image": "i", "source": {"directory": "src", "entry_point": "train.py"}}
    model = {"kind": "model_registration", "package_group": "g", "preprocessing": [before]}
    inside = {"train": train, "register": {**model, "model_data": "s3://b/m", "image": "i"}}
    written(tmp_path / "nested", inner={**INNER, "parameters": {}, "stages": inside})
    stages = {"sub": {"kind": "pipeline", "file": "nested/inner.yaml"}}
    path = written(tmp_path, outer=outer(stages=stages, parameters={}))
    content = files.lock(path)
    assert list(content["sources"]) == ["sub_register.preprocessing[0].source", "sub_train.source"]
    locked = with_renderings(path, content)[0]
    locks.lock_path(path).write_text(json.dumps(locked), encoding="utf-8")
    assert isinstance(locking.specification(path), DagSpec)
    inner = tmp_path / "nested" / "inner.yaml"
    inner.write_text(inner.read_text("utf-8") + "\n# changed\n", encoding="utf-8")
    stale = locking.specification(path)
    assert stale == locking.Stale("outer.lock.json is stale: nested/inner.yaml changed")


@pytest.mark.parametrize(
    ("inner", "stages", "problems"),
    [
        pytest.param(
            INNER,
            {"sub": {"kind": "pipeline", "file": "iner.yaml"}},
            ["stages.sub.file: there is no file iner.yaml"],
            id="no file",
        ),
        pytest.param(
            INNER,
            {"sub": {"kind": "pipeline", "file": "inner.yaml"}},
            ["stages.sub.parameters.text: is missing; inner.yaml needs a value for it"],
            id="a parameter that is missing",
        ),
        pytest.param(
            INNER,
            {"sub": {**GIVEN, "parameters": {"text": "a", "mod": "b"}}},
            ["stages.sub.parameters.mod: inner.yaml has no such parameter; did you mean 'mode'?"],
            id="an unknown parameter",
        ),
        pytest.param(
            INNER,
            {"sub": {**GIVEN, "parameters": {"text": {"parameter": "many"}}}},
            [
                "stages.sub.parameters.text: expected a string, got parameter many, which is a "
                "number",
            ],
            id="a parameter of another type",
        ),
        pytest.param(
            {**INNER, "parameters": {**INNER["parameters"], "count": {"type": "number"}}},
            {"sub": {**GIVEN, "parameters": {"text": 3, "mode": None, "count": "many"}}},
            [
                "stages.sub.parameters.text: expected a string, got 3",
                "stages.sub.parameters.mode: expected a string or a reference, got nothing",
                "stages.sub.parameters.count: expected a number, got 'many'",
            ],
            id="values of another type",
        ),
        pytest.param(
            {**INNER, "parameters": {**INNER["parameters"], "role": {}}},
            {"sub": {**GIVEN, "parameters": {"text": "a", "role": "arn:aws:iam::1:role/R"}}},
            ["stages.sub.parameters.role: is that of the pipeline around; remove it"],
            id="a role",
        ),
        pytest.param(
            INNER,
            {"sub": {**GIVEN, "parameters": {"text": {"parametr": "words"}}}},
            [
                "stages.sub.parameters.text: expected a reference, got {'parametr': 'words'}; did "
                "you mean 'parameter'?"
            ],
            id="no reference",
        ),
        pytest.param(
            INNER,
            {
                "sub": GIVEN,
                "a": tells({"ref": "sub.message"}),
                "b": tells({"join": ["b", {"ref": "sub.then.message"}]}),
            },
            [
                "stages.a.request.Message: sub is a pipeline; refer to a stage of it: sub_first, "
                "sub_then",
                "stages.b.request.Message.join[1]: sub is a pipeline; write {ref: "
                "sub_then.message}",
            ],
            id="a reference to the pipeline itself",
        ),
        pytest.param(
            ["first", "then"],
            {"sub": GIVEN},
            ["stages.sub.file: inner.yaml: holds no mapping with name, workspace and stages"],
            id="no pipeline",
        ),
        pytest.param(
            INNER,
            {"sub": {**GIVEN, "retry": {"attempts": 2}, "parameter": {}}},
            [
                "stages.sub.retry: a pipeline as a stage takes none; give it to the stages of "
                "inner.yaml",
                "stages.sub.parameter: is unknown; did you mean 'parameters'?",
            ],
            id="fields of other stages",
        ),
        pytest.param(
            INNER,
            {"a_very_long_name_of_a_stage": GIVEN},
            [
                "stages.a_very_long_name_of_a_stage.name: its stage first would be "
                "a_very_long_name_of_a_stage_first, and the most is 30 characters; shorten one of "
                "the two names",
                "stages.a_very_long_name_of_a_stage.name: its stage then would be "
                "a_very_long_name_of_a_stage_then, and the most is 30 characters; shorten one of "
                "the two names",
            ],
            id="a long name",
        ),
        pytest.param(
            {**INNER, "region": "us-west-2"},
            {"sub": GIVEN},
            [
                "stages.sub.file: inner.yaml runs in us-west-2, and this pipeline in no region of "
                "its own"
            ],
            id="another region",
        ),
        pytest.param(
            {**INNER, "always": {"note": tells("n")}},
            {"sub": GIVEN},
            [
                "stages.sub.file: inner.yaml has always, which follows the end of a run; move it "
                "to this file"
            ],
            id="stages after an end",
        ),
        pytest.param(
            {**INNER, "stages": {"sub": {"kind": "pipeline", "file": "outer.yaml"}}},
            {"sub": GIVEN},
            [
                "stages.sub.file: inner.yaml: stages.sub.file: pipelines hold each other: "
                "outer.yaml -> inner.yaml -> outer.yaml"
            ],
            id="a circle",
        ),
        pytest.param(
            {**INNER, "stages": {"then": tells({"ref": "frist.message"})}},
            {"sub": GIVEN},
            ["stages.sub_then.request.Message: there is no stage 'sub_frist'; there is sub_then"],
            id="a reference to nothing",
        ),
        pytest.param(
            {**INNER, "stages": {"then": tells({"parameter": "words"})}},
            {"sub": GIVEN},
            [
                "stages.sub_then.request.Message: there is no parameter 'sub_words'; did you "
                "mean 'words'?"
            ],
            id="a parameter of the pipeline around",
        ),
        pytest.param(
            INNER,
            {"sub": GIVEN, "sub_then": tells("x")},
            ["stages.sub_then: 2 stages have this name"],
            id="a name that is taken",
        ),
    ],
)
def test_mistakes_are_refused_with_their_place(
    tmp_path: Path, inner: Data, stages: Data, problems: list[str]
) -> None:
    assert refused(written(tmp_path, inner=inner, outer=outer(stages=stages))) == problems


def test_without_a_file_there_is_nothing_to_read() -> None:
    with pytest.raises(PipelineError) as error:
        Pipeline.parse(outer(stages={"sub": GIVEN}))
    assert "stages.sub.file: is read together with the file that names it" in str(error.value)


def test_the_guide_s_pipelines_are_valid(tmp_path: Path) -> None:
    prepare, market, markets, _ = shown(NESTED_PIPELINES, "yaml")
    (tmp_path / "prepare.yaml").write_text(prepare, encoding="utf-8")
    (tmp_path / "market.yaml").write_text(market, encoding="utf-8")
    pipeline = Pipeline.load(tmp_path / "market.yaml")
    assert [stage.name for stage in pipeline.stages] == ["prepare_fetch", "train"]
    assert pipeline.parameters["prepare_copies"].default == 2
    (tmp_path / "markets.yaml").write_text(markets, encoding="utf-8")
    workflow = Pipeline.load(tmp_path / "markets.yaml").lower()
    assert [step.name for step in workflow.graph.steps if isinstance(step, ForEach)] == [
        "prepare.each",
        "tell.each",
    ]
    assert stepfunctions.render(workflow)["States"]
