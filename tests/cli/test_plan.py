from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from orchestration import Pipeline, TrainingJob
from orchestration.cli.commands import planning
from orchestration.errors import PipelineError
from orchestration.pipeline.pinning.lock_file import lock_path
from orchestration.planning.model.measurements import model_digest

REQUEST = """
model: {config: models/tiny/config.json}
sequence: 1024
batch: {samples: 256}
data: {samples: 100000}
instances: {types: [ml.g5.*, ml.p4d.24xlarge], counts: [1, 2]}
"""
GPT2 = {
    "model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
    "vocab_size": 50257,
}  # fmt: skip


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    config = tmp_path / "models" / "tiny" / "config.json"
    config.parent.mkdir(parents=True)
    config.write_text(json.dumps(GPT2))
    file = tmp_path / "pipeline.yaml"
    file.write_text(REQUEST)
    return file


def run(file: Path, **change: Any) -> None:
    planning.plan(file, **({"report": None, "everything": False, "as_json": False} | change))


def test_a_plan_is_shown_with_reasons(
    request_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(request_file)
    shown = capsys.readouterr()
    assert shown.out.startswith("tiny: cheapest\ntake ")
    for name in ("why not", "depends on", "prices"):
        assert f"\n{name} " in shown.out
    assert "four of five" in shown.out
    assert "more: --all" in shown.err


def test_everything_is_shown_on_demand(
    request_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request_file.write_text(REQUEST.replace("types: [ml.g5.*, ml.p4d.24xlarge], ", ""))
    run(request_file, everything=True)
    shown = capsys.readouterr().out
    assert "memory (GiB): weights" in shown
    assert "Not beaten in both time and cost" in shown
    assert "Rejected" in shown
    assert "ml.m5" in shown


def test_json_is_one_document(request_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(request_file, as_json=True)
    data = json.loads(capsys.readouterr().out)
    assert data["chosen"]["instance_count"] in (1, 2)
    assert data["rejected"]


def test_a_request_reads_its_model(request_file: Path) -> None:
    assert planning.read(request_file).task().model.parameters == 124_439_808


def test_without_a_plan_the_gap_is_told(
    request_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request_file.write_text(REQUEST + "deadline_h: 0.001\n")
    with pytest.raises(typer.Exit) as ended:
        run(request_file)
    assert ended.value.exit_code == 1
    assert "more than the deadline" in capsys.readouterr().out


def test_every_mistake_is_named(request_file: Path) -> None:
    wrong = REQUEST.replace("sequence: 1024", "sequense: 1024").replace("counts", "count")
    wrong = wrong.replace("samples: 256", "samples: 0")
    request_file.write_text(wrong)
    with pytest.raises(PipelineError) as error:
        planning.read(request_file)
    assert str(error.value).startswith("the request for a plan is not valid (")
    problems = {one.path: one.message for one in error.value.problems}
    assert problems["sequence"] == "is missing"
    assert "did you mean 'sequence'" in problems["sequense"]
    assert problems["batch.samples"] == "is 0; the least is 1"
    assert "did you mean 'counts'" in problems["instances.count"]


@pytest.mark.parametrize(
    ("content", "message"), [(None, "can't read"), ("{", "is not JSON"), ("[]", "config")]
)
def test_a_configuration_that_can_not_be_read(
    request_file: Path, content: str | None, message: str
) -> None:
    config = request_file.parent / "models" / "tiny" / "config.json"
    config.unlink()
    if content is not None:
        config.write_text(content)
    with pytest.raises(PipelineError, match=message):
        planning.read(request_file)


def test_a_report_is_written(request_file: Path) -> None:
    report = request_file.parent / "plan.html"
    run(request_file, report=report)
    assert report.read_text().startswith("<!doctype html>")


def test_the_catalog_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    planning.catalog("ml.p4*", as_json=False)
    shown = capsys.readouterr().out
    assert "ml.p4d.24xlarge" in shown
    assert "8 x NVIDIA A100" in shown
    assert "~31.564" in shown
    assert "ml.p3.2xlarge" not in shown


def test_the_catalog_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    planning.catalog("ml.trn2.48xlarge", as_json=True)
    data = json.loads(capsys.readouterr().out)
    [one] = data["instances"]
    assert one["devices"] == 64
    assert one["price"] is None
    assert one["source"] in {source["key"] for source in data["sources"]}


def test_an_unknown_type_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit):
        planning.catalog("ml.p4d.48xlarge", as_json=False)
    assert "did you mean 'ml.p4d.24xlarge'" in capsys.readouterr().err


def in_a_pipeline(path: Path, **fields: Any) -> Path:
    """Write the request as the strategy of a pipeline's stage."""
    stage = {
        "kind": "training_job",
        "image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1",
        "source": {"entry_point": "train.py", "uri": "s3://code/sourcedir.tar.gz"},
        "strategy": {"kind": "auto", **yaml.safe_load(REQUEST)},
        **fields,
    }
    data = {"name": "p", "workspace": "s3://bucket", "stages": {"train": stage}}
    path.write_text(yaml.safe_dump(data))
    return path


def test_a_pipeline_s_plans_are_shown_and_pinned_on_demand(
    request_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = in_a_pipeline(request_file)
    lock = lock_path(path)
    run(path)
    said = capsys.readouterr()
    assert "train: tiny: cheapest" in said.out
    assert "--update` writes it" in said.err
    assert not lock.exists()
    run(path, update=True)
    assert "written" in capsys.readouterr().err
    [stage] = Pipeline.load(path).stages
    assert isinstance(stage, TrainingJob)
    assert str(stage.cluster.instance_type).startswith(("ml.g5.", "ml.p4d."))
    run(path)
    assert "is fresh" in capsys.readouterr().err
    run(path, as_json=True)
    assert json.loads(capsys.readouterr().out)["train"]["chosen"]


def test_a_plan_is_pinned_though_nobody_reads_it(request_file: Path) -> None:
    """``orchestrate plan … --update | head -1``."""
    path = in_a_pipeline(request_file)
    command = [sys.executable, "-m", "orchestration.cli", "plan", str(path), "--update"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as planning:
        assert planning.stdout is not None
        planning.stdout.close()
    assert lock_path(path).exists()


def test_the_time_and_cost_of_a_search_are_told(
    request_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = in_a_pipeline(request_file, kind="tuning_job", limits={"jobs": 20})
    run(path, as_json=True)
    chosen = json.loads(capsys.readouterr().out)["train"]["chosen"]
    run(path)
    [told] = [line for line in capsys.readouterr().out.splitlines() if "such training" in line]
    cost, hours = 20 * chosen["cost_usd"]["expected"], 20 * chosen["time_s"]["expected"] / 3600
    jobs = f"train: up to 20 such training jobs, {hours:,.1f} h of these instances"
    assert told == f"{jobs} and ${cost:,.0f}"


def test_what_can_not_be_pinned_or_chosen(
    request_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.BadParameter, match="is a planning request"):
        run(request_file, update=True)
    path = in_a_pipeline(request_file)
    with pytest.raises(typer.BadParameter, match="there is no 'trian'; did you mean 'train'"):
        run(path, stage="trian")
    path.write_text(path.read_text().replace("kind: auto", "kind: none"))
    with pytest.raises(PipelineError, match="nothing to plan"):
        run(path)


def test_a_pipeline_s_plans_have_the_prices_of_its_region(
    request_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = in_a_pipeline(request_file)
    path.write_text(path.read_text() + "region: eu-west-1\n")
    run(path, as_json=True)
    answer = json.loads(capsys.readouterr().out)["train"]
    assert answer["region"] == "eu-west-1"
    assert {price["region"] for price in answer["prices"].values()} == {"eu-west-1"}
    assert answer["chosen"]["price"]["estimate"]


def test_measurements_beside_the_file_correct_the_plan(
    request_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measurement = {
        "date": "2026-11-20", "source": "probe", "job": "probe-1",
        "model": model_digest(planning.read(request_file).task().model),
        "instance_type": "ml.g5.xlarge", "instance_count": 1,
        "layout": {"family": "single", "devices_per_instance": 1},
        "sequence": 1024, "global_batch": 256, "micro_batch": 8, "precision": "bf16",
        "optimizer": "adamw", "step_time_s": 30.0,
    }  # fmt: skip
    file = request_file.with_suffix(".measurements.json")
    file.write_text(json.dumps({"measurements": [measurement]}))
    run(request_file)
    shown = capsys.readouterr().out
    expected = "measured    1 x ml.g5.xlarge, data parallel, 8 at a time: steps of 30 s, "
    [line] = [line for line in shown.splitlines() if line.startswith("measured")]
    assert line.startswith(expected)
    assert line.endswith("than predicted (2026-11-20)")
