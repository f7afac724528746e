"""``render``, ``graph``, ``lock``, ``schema``: text on standard output, in files, compared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tests.cli.conftest import ROOT, Command
from tests.guides import AFTER_THE_END, NESTED_PIPELINES, shown
from tests.shown.readers import commands, options_of

BACKENDS = ("step-functions", "airflow")


@pytest.mark.parametrize("backend", BACKENDS)
def test_standard_output_is_the_document_itself(
    orchestrate: Command, staging: Path, backend: str
) -> None:
    said = orchestrate("render", backend, staging)
    assert (said.status, said.err) == (0, "")
    assert isinstance(said.document, dict)
    assert said.out.endswith("}\n")


@pytest.mark.parametrize("backend", BACKENDS)
def test_check_tells_a_fresh_file_from_a_stale_one(
    orchestrate: Command, staging: Path, tmp_path: Path, backend: str
) -> None:
    file = tmp_path / "made" / "definition.json"
    assert orchestrate("render", backend, staging, "-o", file, "--check").status == 1
    assert orchestrate("render", backend, staging, "-o", file).status == 0
    assert file.read_text() == orchestrate("render", backend, staging).out
    assert orchestrate("render", backend, staging, "-o", file, "--check").status == 0
    before = file.read_text()
    staging.write_text(staging.read_text().replace("/copying]", "/elsewhere]"))
    said = orchestrate("render", backend, staging, "-o", file, "--check")
    assert said.status == 1
    assert "is stale; run `orchestrate render" in said.err
    assert any(line.startswith("-") and "/copying" in line for line in said.out.splitlines())
    assert any(line.startswith("+") and "/elsewhere" in line for line in said.out.splitlines())
    assert file.read_text() == before


def test_check_without_a_file_is_a_usage_error(orchestrate: Command, staging: Path) -> None:
    said = orchestrate("render", "airflow", staging, "--check")
    assert said.status == 2
    assert "-o FILE" in said.err


def test_an_unknown_backend_is_a_usage_error(orchestrate: Command, staging: Path) -> None:
    said = orchestrate("render", "luigi", staging)
    assert said.status == 2
    assert "step-functions" in said.err


@pytest.mark.parametrize(("form", "start"), [("mermaid", "---\ntitle"), ("dot", "digraph")])
def test_graphs_are_drawn(orchestrate: Command, form: str, start: str) -> None:
    said = orchestrate("graph", ROOT / "dags/digits.yaml", "--format", form)
    assert said.status == 0
    assert said.out.startswith(start)


def test_lock_writes_what_loading_reads(orchestrate: Command, training: Path) -> None:
    assert orchestrate("lock", training, "--check").status == 1
    assert orchestrate("lock", training).status == 0
    locked = json.loads(training.with_suffix(".lock.json").read_text())
    assert list(locked["sources"]) == ["train.source"]
    assert orchestrate("lock", training, "--check").status == 0
    (training.parent / "code/train.py").write_text("print('changed')\n")
    assert orchestrate("lock", training, "--check").status == 1
    assert orchestrate("lock", training).status == 0
    assert json.loads(training.with_suffix(".lock.json").read_text()) != locked


def test_stale_code_is_said_and_not_taken_in_silently(
    orchestrate: Command, training: Path, tmp_path: Path
) -> None:
    orchestrate("lock", training)
    (training.parent / "code/train.py").write_text("print('changed')\n")
    said = orchestrate("render", "airflow", training, "-o", tmp_path / "dag.json")
    assert said.status == 0
    assert "warning: train.source changed since it was locked" in said.err


@pytest.fixture(scope="module")
def schema(orchestrate: Command) -> Any:
    said = orchestrate("schema")
    assert (said.status, said.err) == (0, "")
    jsonschema.Draft202012Validator.check_schema(said.document)
    return jsonschema.Draft202012Validator(said.document)


def pipeline(name: str = "digits") -> Any:
    return yaml.safe_load((ROOT / f"dags/{name}.yaml").read_text())


@pytest.mark.parametrize("name", ["digits", "llm_fsx"])
def test_the_schema_takes_the_example_pipelines(schema: Any, name: str) -> None:
    assert list(schema.iter_errors(pipeline(name))) == []


@pytest.mark.parametrize("guide", [AFTER_THE_END, NESTED_PIPELINES], ids=lambda path: path.stem)
def test_the_schema_takes_the_pipelines_of_guides(schema: Any, guide: Path) -> None:
    for text in shown(guide, "yaml"):
        assert list(schema.iter_errors(yaml.safe_load(text))) == []


def _undescribed(schema: object, path: str = "$") -> Iterator[str]:
    """Yield the properties without a description, but for those that only tell forms apart."""
    match schema:
        case dict():
            for name, inner in schema.items():
                if name == "properties" and not path.endswith(".if"):
                    for field, property_ in inner.items():
                        if not property_.get("description"):
                            yield f"{path}.{field}"
                yield from _undescribed(inner, f"{path}.{name}")
        case list():
            for index, inner in enumerate(schema):
                yield from _undescribed(inner, f"{path}[{index}]")


def test_every_property_of_the_schema_has_a_description(schema: Any) -> None:
    assert list(_undescribed(schema.schema)) == []


def test_the_schema_takes_stages_as_a_list(schema: Any) -> None:
    data = pipeline()
    data["stages"] = [{"name": name, **stage} for name, stage in data["stages"].items()]
    assert list(schema.iter_errors(data)) == []


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        (("stages", "train", "clutser"), {}, "$.stages.train"),
        (("stages", "train", "cluster", "instance_cuont"), 2, "$.stages.train.cluster"),
        (("stages", "train", "kind"), "traning_job", "$.stages.train.kind"),
        (("stages", "Train"), {"kind": "data_staging", "source": "s3://a/b"}, "$.stages"),
        (("stages", "staging", "source"), {"reff": "a.b"}, "$.stages.staging.source"),
        (("stages", "train", "max_runtime_s"), 0, "$.stages.train.max_runtime_s"),
        (("paramters",), {}, "$"),
        (("on_failure",), {"alarm": {"kind": "aws_cal"}}, "$.on_failure.alarm.kind"),
        (
            ("stages", "prepare"),
            {"kind": "pipeline", "file": "prepare.yaml", "retry": {"attempts": 2}},
            "$.stages.prepare",
        ),
    ],
)
def test_the_schema_finds_mistakes_where_they_are(
    schema: Any, path: tuple[str, ...], value: object, where: str
) -> None:
    data = pipeline()
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    assert where in [error.json_path for error in schema.iter_errors(data)]


def test_the_schema_requires_a_kind(schema: Any) -> None:
    data = pipeline()
    del data["stages"]["deploy"]["kind"]
    assert [e.json_path for e in schema.iter_errors(data) if "kind" in e.message] == [
        "$.stages.deploy"
    ]


def test_a_required_field_stands_in_the_stage_or_in_the_defaults(schema: Any) -> None:
    data = pipeline("llm_fsx")
    metric = data["stages"]["evaluate"].pop("metric")
    assert [each.json_path for each in schema.iter_errors(data)] == ["$.stages.evaluate"]
    data["defaults"] = [{"for": ["evaluate"], "metric": metric}]
    assert list(schema.iter_errors(data)) == []
    data["defaults"][0]["mertic"] = metric
    assert [each.json_path for each in schema.iter_errors(data)] == ["$.defaults[0]"]


@pytest.mark.parametrize(
    "words",
    [("render", "airflow"), ("render", "step-functions"), ("graph",), ("schema",), ("lock",)],
    ids=" ".join,
)
def test_json_tells_what_became_of_a_file(
    orchestrate: Command, training: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    pipeline = () if words == ("schema",) else (training,)
    file = training.with_suffix(".lock.json") if words == ("lock",) else tmp_path / "made"
    named = () if words == ("lock",) else ("-o", file)

    def told(*more: str) -> tuple[int, Any]:
        said = orchestrate(*words, *pipeline, *named, "--json", *more)
        assert said.document["file"] == str(file)
        return said.status, said.document["state"]

    assert told("--check") == (1, "missing")
    assert told() == (0, "written")
    assert told() == told("--check") == (0, "fresh")
    file.write_text(file.read_text() + " \n")
    stale = orchestrate(*words, *pipeline, *named, "--json", "--check")
    assert (stale.status, stale.document["state"]) == (1, "stale")
    assert stale.document["diff"][-1] == "- "


@pytest.mark.parametrize("words", [("render", "airflow"), ("schema",)], ids=" ".join)
def test_json_without_a_file_holds_what_is_printed_otherwise(
    orchestrate: Command, training: Path, words: tuple[str, ...]
) -> None:
    pipeline = () if words == ("schema",) else (training,)
    document = orchestrate(*words, *pipeline, "--json").document
    assert document["state"] == "printed"
    assert document["content"] == orchestrate(*words, *pipeline).document


def test_json_holds_a_graph_as_text_and_tells_of_a_picture(
    orchestrate: Command, training: Path, tmp_path: Path
) -> None:
    graph = orchestrate("graph", training, "--json").document
    assert graph["content"] == orchestrate("graph", training).out
    picture = tmp_path / "steps.png"
    for state in ("written", "fresh"):
        said = orchestrate("graph", training, "-o", picture, "--json")
        assert said.document == {"file": str(picture), "state": state, "diff": [], "warnings": []}


def test_json_has_the_warnings(orchestrate: Command, training: Path) -> None:
    orchestrate("lock", training)
    (training.parent / "code/train.py").write_text("print('changed')\n")
    said = orchestrate("render", "airflow", training, "--json")
    [warning] = said.document["warnings"]
    assert warning.startswith("train.source changed since it was locked")
    assert f"warning: {warning}" in said.err


def test_every_command_takes_json() -> None:
    without = [name for name in commands() if "--json" not in options_of(name)]
    assert without == []
