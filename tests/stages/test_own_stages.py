"""Kinds of stages from outside of the package: as good as its own, or refused in words."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from orchestration import Pipeline, PipelineError
from orchestration.stages.kinds import Kinds
from tests import guides


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with guides.own_stages(tmp_path):
        monkeypatch.syspath_prepend(tmp_path)
        yield tmp_path


@pytest.fixture
def my_stages(folder: Path) -> ModuleType:
    return import_module("my_stages")


def test_the_guide_s_pipeline_loads_and_lowers(folder: Path) -> None:
    pipeline = Pipeline.load(folder / "features.yaml", stages=["my_stages"])
    assert pipeline.lower().graph.steps[0].name == "ask.call"


def test_the_guide_s_first_stage_has_25_lines_and_is_the_call_that_it_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [text] = guides.shown(guides.OWN_STAGES, "py")
    assert len([line for line in text.splitlines() if line]) <= 25
    (tmp_path / "announcing.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    announce = import_module("announcing").Announce
    tell = {"kind": "announce", "text": {"join": ["run ", {"run": "id"}]}}
    short = {"name": "p", "workspace": "s3://bucket/runs", "stages": {"tell": tell}}
    call = {
        "kind": "aws_call",
        "service": "sns",
        "operation": "Publish",
        "request": {
            "TopicArn": "arn:aws:sns:us-west-2:123456789012:team",
            "Message": tell["text"],
        },
        "results": {"message": "MessageId"},
    }
    same = Pipeline.parse({**short, "stages": {"tell": call}}).lower()
    assert Pipeline.parse(short, stages=[announce]).lower().graph == same.graph


def test_a_class_needs_no_name(my_stages: ModuleType) -> None:
    ask = my_stages.AthenaQuery(name="ask", sql="SELECT 1")
    pipeline = Pipeline(name="p", workspace="s3://bucket/runs", stages=[ask])
    same = Pipeline.parse(
        {
            "name": "p",
            "workspace": "s3://bucket/runs",
            "stages": {"ask": {"kind": "athena_query", "sql": "SELECT 1"}},
        },
        stages=[my_stages.AthenaQuery],
    )
    assert pipeline.lower() == same.lower()


def test_mistakes_in_its_fields_are_reported_as_those_of_others(folder: Path) -> None:
    path = folder / "features.yaml"
    data = yaml.safe_load(path.read_text())
    data["stages"]["ask"] = {"kind": "athena_query", "sq": "SELECT 1", "workgroup": 7}
    data["stages"]["staging"]["source"] = {"ref": "ask.results"}
    path.write_text(yaml.safe_dump(data))
    with pytest.raises(PipelineError) as error:
        Pipeline.load(path, stages=["my_stages"])
    assert [str(problem) for problem in error.value.problems] == [
        "stages.ask.workgroup: expected text (in quotes where YAML would take it for something "
        "else), got 7",
        "stages.ask.sq: is unknown; did you mean 'sql'?",
        "stages.staging.source: stage 'ask' has no output 'results'; did you mean 'result'?",
    ]


def test_a_kind_that_nobody_named_is_refused_with_the_way_out(folder: Path) -> None:
    with pytest.raises(PipelineError, match=r"there is no kind 'athena_query'.*--stages MODULE"):
        Pipeline.load(folder / "features.yaml")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"StartQueryExecution"', '"StartQueries"', "StartQueries"),
        ('"GetQueryExecution"', '"GetQueries"', "GetQueries"),
        ('"WorkGroup"', '"WorkGruop"', "WorkGruop"),
        ('outputs={"result": ', 'outputs={"reslt": ', "declares output 'result'"),
        ('outputs={"result": ', 'outputs={"n": 1, "result": ', "'n', which is none of its outputs"),
        ("name=self.name", 'name="query"', "begin the name with that of the stage"),
        ('query.outputs["id"]', 'Result("ask.cal", "id")', "did you mean 'ask.call'"),
        ('query.outputs["id"]', 'Result("ask.call", "ids")', "does not give; did you mean 'id'"),
    ],
)
def test_a_kind_that_breaks_the_rules_is_an_error_of_the_stage(
    folder: Path, old: str, new: str, message: str
) -> None:
    path = folder / "my_stages.py"
    text = path.read_text()
    assert old in text
    header = "from orchestration.expressions import Result\n"
    path.write_text(header + text.replace(old, new))
    with pytest.raises(PipelineError) as error:
        Pipeline.load(folder / "features.yaml", stages=["my_stages"])
    assert message in str(error.value)
    assert {problem.stage for problem in error.value.problems} == {"ask"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"athena_query"', '"AthenaQuery"', "is not snake case"),
        ('kind: Literal["athena_query"]', "kind: str", "has no kind"),
        ("def lower", "def lowered", "does not say how it is lowered"),
        ("Outputs(QueryOutputs)", "QueryOutputs", "its outputs are not Outputs"),
        ('"athena_query"', '"training_job"', "is a kind of stage in my_stages.AthenaQuery and in"),
        ("class AthenaQuery(Stage)", "class AthenaQuery(Text)", "holds no stage"),
    ],
)
def test_a_kind_that_is_not_one_is_refused_when_it_is_named(
    folder: Path, old: str, new: str, message: str
) -> None:
    path = folder / "my_stages.py"
    text = path.read_text().replace("class AthenaQuery(Text)", "class AthenaQuery(Model)")
    new = new.replace("(Text)", "(Model)")
    header = "from orchestration.stages.values import Model\n" if "Model" in new else ""
    path.write_text(header + text.replace(old, new))
    with pytest.raises(PipelineError, match=message):
        Kinds.of(["my_stages"])


def test_two_kinds_of_one_name_are_refused(my_stages: ModuleType) -> None:
    other = type("Other", (my_stages.AthenaQuery,), {"__module__": "theirs"})
    with pytest.raises(PipelineError, match=r"my_stages.AthenaQuery and in theirs.Other"):
        Kinds.of([my_stages, other])
    assert Kinds.of([my_stages, "my_stages"]).names()[-1] == "athena_query"


def test_an_error_in_lower_says_which_stage_was_lowered(folder: Path) -> None:
    path = folder / "my_stages.py"
    path.write_text(path.read_text().replace("self.workgroup,", "self.wrokgroup,"))
    with pytest.raises(AttributeError, match="wrokgroup") as error:
        Pipeline.load(folder / "features.yaml", stages=["my_stages"])
    assert error.value.__notes__ == ["while stage 'ask', a AthenaQuery, was lowered"]


@pytest.fixture
def distribution(folder: Path) -> Path:
    """A distribution whose entry point is the guide's stage, installed beside it."""
    metadata = folder / "my_stages-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: my-stages\nVersion: 1.0\n")
    points = metadata / "entry_points.txt"
    points.write_text("[orchestration.stages]\nathena_query = my_stages:AthenaQuery\n")
    return points


def test_an_installed_kind_needs_no_name(distribution: Path, folder: Path) -> None:
    pipeline = Pipeline.load(folder / "features.yaml")
    assert type(pipeline.stages[0]).__name__ == "AthenaQuery"
    assert "athena_query" in Kinds().classes()


@pytest.mark.parametrize(
    ("point", "message"),
    [
        ("my_stages:Query", r"my_stages:Query \(my-stages\) can't be loaded"),
        ("my_stagez:AthenaQuery", "can't be loaded: No module named 'my_stagez'"),
        ("my_stages:join", "is not a class"),
        ("my_stages:QueryOutputs", "is not a subclass"),
    ],
)
def test_an_installed_kind_that_is_none_is_an_error(
    distribution: Path, folder: Path, point: str, message: str
) -> None:
    distribution.write_text(f"[orchestration.stages]\nathena_query = {point}\n")
    with pytest.raises(PipelineError, match=message):
        Pipeline.load(folder / "features.yaml")


def test_an_entry_point_has_the_name_of_its_kind(distribution: Path, folder: Path) -> None:
    distribution.write_text("[orchestration.stages]\nquery = my_stages:AthenaQuery\n")
    path = folder / "features.yaml"
    path.write_text(path.read_text().replace("athena_query", "query"))
    with pytest.raises(PipelineError, match="is of the kind 'athena_query'"):
        Pipeline.load(path)
