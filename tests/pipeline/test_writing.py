"""A pipeline's YAML reads back as the same pipeline, or what has no form there is named."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration import (
    AwsCall,
    Cluster,
    Pipeline,
    PipelineError,
    Source,
    TrainingJob,
    parameter,
)
from orchestration.pipeline.yaml import dumped, parsed
from orchestration.stages import Context, Fragment, Outputs, Stage
from orchestration.stages.stage import NoOutputs
from tests import guides
from tests.pipeline.building import IMAGE, evaluation, job, pipeline
from tests.stages.test_option_table import HONOURED, STAGES
from tests.stages.test_option_table import pipeline as with_options

ROOT = Path(__file__).parents[2]
FILES = sorted([*ROOT.glob("dags/*.yaml"), *ROOT.glob("examples/*/*.yaml")])
CLUSTER = Cluster(instance_type="ml.m5.xlarge")


def again(made: Pipeline) -> Pipeline:
    return Pipeline.parse(parsed(made.to_yaml(), Path("pipeline.yaml")))


def of(*stages: Stage, **further: Any) -> Pipeline:
    return Pipeline(name="p", workspace="s3://bucket/p", stages=list(stages), **further)


def refused(made: Pipeline) -> list[str]:
    with pytest.raises(PipelineError) as error:
        made.to_yaml()
    return [str(problem) for problem in error.value.problems]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_reads_back_as_itself(path: Path) -> None:
    made = Pipeline.load(path)
    assert again(made) == made


@pytest.mark.parametrize("kind", STAGES)
def test_a_stage_with_its_options_reads_back_as_itself(kind: str, tmp_path: Path) -> None:
    options = [option for stage, option in HONOURED if stage == kind]
    made = with_options(tmp_path, kind, *options)
    assert again(made) == made


@pytest.mark.parametrize(
    "condition",
    [
        {"in": [{"parameter": "mode"}, ["full", "quick"]]},
        {"all": [{"not": {"parameter": "checked"}}, {"at_least": [{"parameter": "n"}, 1.5]}]},
        {"any": [{"equal": [{"parameter": "mode"}, "1e-4"]}, {"parameter": "checked"}]},
    ],
)
def test_conditions_read_back(condition: dict[str, Any]) -> None:
    parameters = {
        "mode": {"default": "full"},
        "checked": {"type": "boolean", "default": True},
        "n": {"type": "number", "default": 1},
    }
    made = pipeline(job("a", when=condition), parameters=parameters)
    assert again(made) == made


def test_the_stages_after_the_end_and_all_references_read_back() -> None:
    tell = {
        "kind": "aws_call",
        "service": "sns",
        "operation": "Publish",
        "request": {"TopicArn": {"parameter": "topic"}, "Message": {"outcome": "cause"}},
    }
    made = pipeline(
        job("full"),
        job("quick", hyperparameters={"lr": "1e-4", "decay": 1e-4, "on": True, "zip": "012"}),
        evaluation("evaluate", "full"),
        job("each", for_each={"items": ["de", "fr"]}, hyperparameters={"m": {"each": "item"}}),
        on_failure={"tell": tell},
        always=[{**tell, "name": "end", "request": {"Message": {"run": "id"}}}],
        parameters={"topic": {"description": "of:\n  two lines"}},
        schedule={"cron": "0 6 * * MON"},
    )
    assert again(made) == made
    assert [stage.name for stage in again(made).always] == ["end"]


def test_only_what_differs_from_the_defaults_is_written() -> None:
    made = of(
        TrainingJob(name="train", image=parameter("image"), cluster=CLUSTER),
        parameters={"image": {}},
    )
    assert made.to_yaml() == (
        "name: p\n"
        "parameters: {image: {}}\n"
        "workspace: s3://bucket/p\n"
        "stages:\n"
        "  train:\n"
        "    kind: training_job\n"
        "    image: {parameter: image}\n"
        "    cluster: {instance_type: ml.m5.xlarge}\n"
    )


def test_code_is_written_relative_to_the_file_and_followed(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    script = tmp_path / "code" / "train.py"
    script.write_text("print(1)\n")
    file = tmp_path / "pipelines" / "p.yaml"
    file.parent.mkdir()
    source = Source.at(tmp_path / "code", "train.py", runtime=True)
    made = of(TrainingJob(name="train", image=IMAGE, source=source, cluster=CLUSTER))
    assert again(made) == made
    file.write_text(made.to_yaml(file.parent), encoding="utf-8")
    assert "directory: ../code" in file.read_text()
    assert "sha256" not in file.read_text()
    assert Pipeline.load(file) == made
    script.write_text("print(2)\n")
    assert Pipeline.load(file) != made


def test_code_that_has_changed_keeps_its_digest(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)\n")
    source = Source.at(tmp_path, "train.py")
    made = of(TrainingJob(name="train", image=IMAGE, source=source, cluster=CLUSTER))
    (tmp_path / "train.py").write_text("print(2)\n")
    assert f"sha256: {source.sha256}" in made.to_yaml(tmp_path)


def test_kinds_of_one_s_own_are_named_by_their_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with guides.own_stages(tmp_path):
        monkeypatch.syspath_prepend(tmp_path)
        ask = import_module("my_stages").AthenaQuery(name="ask", sql="SELECT 1")
        made = of(ask)
        text = made.to_yaml()
        assert text.startswith("# Kinds of its own: orchestrate --stages my_stages ...\n")
        (tmp_path / "p.yaml").write_text(text)
        assert Pipeline.load(tmp_path / "p.yaml", stages=["my_stages"]) == made


class Pair(Stage):
    """A kind with a field of any type."""

    kind: Literal["pair"] = "pair"
    of: Any = None
    outputs: ClassVar[Outputs[Any]] = Outputs(NoOutputs)

    def lower(self, context: Context) -> Fragment:
        request = {"TopicArn": "arn:aws:sns:us-west-2:123456789012:team", "Message": "x"}
        call = AwsCall(name=self.name, service="sns", operation="Publish", request=request)
        return call.lower(context)


class Larger(TrainingJob):
    """A job that shares its kind with the package's."""


def test_all_that_yaml_has_no_form_for_is_named_at_once() -> None:
    class Local(Pair):
        kind: Literal["local_pair"] = "local_pair"  # type: ignore[assignment]  # a kind of its own

    made = of(
        Larger(name="larger", image=IMAGE, cluster=CLUSTER),
        Local(name="local", of={"x": [object()]}),
    )
    one, two, three = refused(made)
    assert one.startswith("stages.local.of.x[0]: is <object object at ")
    assert one.endswith(", which YAML has no form for; keep the pipeline in Python")
    assert two == (
        "stages.larger: is a Larger, but YAML reads the package's training_job; give it its own "
        "kind"
    )
    assert three.startswith("stages.local: its class tests.pipeline.test_writing.")
    assert three.endswith("can't be imported by name; move it to the top of a module")


def test_a_value_that_reads_back_as_another_is_named() -> None:
    assert refused(of(Pair(name="pair", of=(1, 2)))) == [
        "stages.pair.of: is (1, 2), which YAML reads as [1, 2]; keep the pipeline in Python"
    ]


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.from_regex(r"[-+]?[0-9_.:]{0,4}(e[-+]?[0-9])?|~|<<|=|no|Null|0x1", fullmatch=True)
)


@given(st.dictionaries(st.text(), st.recursive(SCALARS, st.lists, max_leaves=5), max_size=4))
def test_plain_data_reads_back_with_its_types(data: dict[str, Any]) -> None:
    read = parsed(dumped({"x": data}), Path("x.yaml"))["x"]
    assert repr(read) == repr(data)
