"""Every driver does the same: the same calls and requests, and the same account after."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from orchestration import Pipeline, TrainingJob
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import RunReport, run
from orchestration.pipeline.lowering import needs
from tests.conformance import normal, pipelines
from tests.conformance.gallery import DRIVERS

pytestmark = [pytest.mark.toolkit, pytest.mark.slow]

ROOT = Path(__file__).parents[2]
Backend = Literal["step-functions", "airflow", "direct"]
BACKENDS: tuple[Backend, ...] = DRIVERS


class Outcome:
    """What one backend did with a pipeline, in an account of its own."""

    def __init__(self, reports: list[RunReport], calls: list[Any], state: dict[str, Any]) -> None:
        self.reports = reports
        self.calls = calls
        self.state = state

    @property
    def outputs(self) -> Any:
        return self.last.outputs

    @property
    def last(self) -> RunReport:
        return self.reports[-1]


def data(folder: Path) -> Path:
    """A data set whose names need encoding."""
    for name in ("train/one.csv", "train/two words + ü.csv", "train/deep/%41&x=1.csv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    (folder / "holdout").mkdir()
    (folder / "holdout" / "held.csv").write_text("held back")
    return folder


def perform(
    pipeline: Pipeline,
    backend: Backend,
    folder: Path,
    times: int = 1,
    parameters: dict[str, Any] | None = None,
    airflow: LocalAirflow | None = None,
    time_scale: float = 0.005,
) -> Outcome:
    given = {**pipelines.PARAMETERS, **(parameters or {})}
    with EmbeddedAws(time_scale=time_scale) as aws:
        reports = [
            run(
                pipeline,
                on=backend,
                parameters=given,
                aws=aws,
                uploads={given["data"]: folder},
                airflow=airflow,
            )
            for _ in range(times)
        ]
        return Outcome(reports, [c for r in reports for c in r.calls], aws.state())


Compare = Callable[..., dict[Backend, Outcome]]


@pytest.fixture
def everywhere(tmp_path: Path, airflow: LocalAirflow) -> Compare:
    folder = data(tmp_path)

    def compare(
        pipeline: Pipeline,
        times: int = 1,
        folder: Path = folder,
        time_scale: float = 0.005,
        **parameters: Any,
    ) -> dict[Backend, Outcome]:
        outcomes = {
            b: perform(pipeline, b, folder, times, parameters, airflow, time_scale)
            for b in BACKENDS
        }
        agree(outcomes)
        for outcome in outcomes.values():
            for report in outcome.reports:
                in_order(pipeline, list(report.calls))
        return outcomes

    return compare


def agree(outcomes: dict[Backend, Outcome]) -> None:
    """The law: the same changes, the same questions, the same account, the same end."""
    states, *others = (outcomes[backend] for backend in BACKENDS)
    for other in others:
        assert normal.changes(states.calls) == normal.changes(other.calls)
        assert normal.questions(states.calls) == normal.questions(other.calls)
        assert normal.account(states.state) == normal.account(other.state)
        assert [r.state for r in states.reports] == [r.state for r in other.reports]
        assert states.last.error == other.last.error
        assert normal.anonymous(states.last.cause) == normal.anonymous(other.last.cause)
        assert normal.anonymous(states.last.outputs) == normal.anonymous(other.last.outputs)


def in_order(pipeline: Pipeline, calls: list[Any]) -> None:
    """No stage's job starts before those it needs have sent their last change."""
    made = {stage.name: sequence_of(stage.name, calls) for stage in pipeline.stages}
    for stage in pipeline.stages:
        for before in needs(stage):
            if made[before] and made[stage.name]:
                assert max(made[before]) < min(made[stage.name]), (before, stage.name)


def sequence_of(stage: str, calls: list[Any]) -> list[int]:
    tag = json.dumps({"Key": "orchestration:stage", "Value": stage}, sort_keys=True)
    return [c.sequence for c in calls if tag in json.dumps(c.request, sort_keys=True)]


def jobs(outcome: Outcome, operation: str) -> list[Any]:
    return [c for c in outcome.calls if c.operation == operation and c.error_code is None]


@pytest.mark.thorough
def test_two_candidates_train_side_by_side_with_literal_strings(everywhere: Compare) -> None:
    for outcome in everywhere(pipelines.candidates()).values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        assert outcome.outputs["evaluate_small"]["best_metric"] == 0.6
        assert outcome.outputs["evaluate_large"]["best_metric"] == 0.5
        assert outcome.outputs["staging"]["object_count"] == 4
        requests = {
            call.request["TrainingJobName"].split("-")[1]: call.request
            for call in jobs(outcome, "CreateTrainingJob")
        }
        note = requests["small"]["HyperParameters"]["note"]
        assert json.loads(note) == pipelines.LITERAL
        assert requests["large"]["Environment"]["LITERAL"] == "{{ x }} $.y {% z %}"


def test_a_missed_gate_fails_the_run_and_deploys_nothing(everywhere: Compare) -> None:
    for outcome in everywhere(pipelines.gated("fail")).values():
        assert outcome.last.state == "failed"
        assert outcome.last.error == "BelowThreshold"
        assert "0.7" in str(outcome.last.cause)
        assert not jobs(outcome, "CreateModel")


@pytest.mark.thorough
def test_a_gate_that_stops_ends_well_and_deploys_nothing(everywhere: Compare) -> None:
    for outcome in everywhere(pipelines.gated("stop")).values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        assert outcome.outputs["evaluate"]["passed"] is False
        assert set(outcome.outputs["deploy"].values()) == {None}
        assert not jobs(outcome, "CreateModel")


def test_a_checkpoint_that_diverged_has_lost(everywhere: Compare) -> None:
    for outcome in everywhere(pipelines.judged("nan,0.7,inf")).values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        assert outcome.outputs["evaluate"]["best_metric"] == 0.7
        metrics = [result["metric"] for result in outcome.outputs["evaluate"]["results"]]
        assert metrics == [None, 0.7, None]


def test_nothing_is_chosen_where_every_checkpoint_diverged(tmp_path: Path) -> None:
    outcome = perform(pipelines.judged("nan,inf"), "direct", data(tmp_path))
    assert (outcome.last.state, outcome.last.error) == ("failed", "MetricNotFinite")
    assert "stage evaluate: score is NaN or infinite" in str(outcome.last.cause)


def test_a_second_run_updates_the_endpoint(everywhere: Compare) -> None:
    for outcome in everywhere(pipelines.served(), times=2).values():
        assert [report.state for report in outcome.reports] == ["succeeded"] * 2
        assert len(jobs(outcome, "CreateEndpoint")) == 1
        assert len(jobs(outcome, "UpdateEndpoint")) == 1
        assert outcome.outputs["deploy"]["answer"]["score"] == 0.7
        assert outcome.outputs["deploy"]["answer"]["asked"] == {"text": pipelines.LITERAL}


def test_a_file_system_lives_only_while_it_is_read(everywhere: Compare) -> None:
    for outcome in everywhere(pipelines.file_system()).values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        [deleted] = jobs(outcome, "DeleteFileSystem")
        [evaluated] = jobs(outcome, "CreateProcessingJob")
        assert deleted.sequence < evaluated.sequence
        assert outcome.state["fsx"]["FileSystems"] == {}


@pytest.mark.thorough  # "without capacity" of `test_faults.py` is the same on every driver
def test_a_failed_job_leaves_no_file_system(everywhere: Compare) -> None:
    for outcome in everywhere(pipelines.file_system(fail="on purpose")).values():
        assert outcome.last.state == "failed"
        assert "on purpose" in str(outcome.last.cause)
        assert len(jobs(outcome, "DeleteFileSystem")) == 1
        assert not jobs(outcome, "CreateProcessingJob")


@pytest.mark.thorough
def test_digits_trains_on_two_hosts_and_serves_the_best(
    everywhere: Compare, tmp_path: Path
) -> None:
    folder = layout(ROOT / "examples/digits/data", tmp_path / "digits", "*.csv.gz")
    outcomes = everywhere(
        shortened(Pipeline.load(ROOT / "dags/digits.yaml"), epochs=2),
        folder=folder,
        time_scale=0.02,
        training_image=pipelines.IMAGE,
        inference_image=pipelines.IMAGE,
    )
    for outcome in outcomes.values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        assert outcome.outputs["evaluate"]["best_metric"] > 0.93
        assert len(outcome.outputs["evaluate"]["results"]) == 2
        assert outcome.outputs["deploy"]["answer"]["predictions"][0]["label"] == 2


def shortened(pipeline: Pipeline, **hyperparameters: int) -> Pipeline:
    """Train less: as it is, the pipeline runs in the demo's test."""
    staging, train, *others = pipeline.stages
    assert isinstance(train, TrainingJob)
    less = train.model_copy(
        update={"hyperparameters": {**train.hyperparameters, **hyperparameters}}
    )
    return pipeline.model_copy(update={"stages": (staging, less, *others)})


@pytest.mark.thorough
def test_llm_trains_on_two_hosts_over_lustre(everywhere: Compare, tmp_path: Path) -> None:
    folder = layout(ROOT / "examples/llm_fsx/data", tmp_path / "corpus", "*.txt")
    small = {"layers": 2, "width": 32, "heads": 2, "context": 64, "max_steps": 12}
    outcomes = everywhere(
        Pipeline.load(ROOT / "dags/llm_fsx.yaml"),
        folder=folder,
        time_scale=0.02,
        training_image=pipelines.IMAGE,
        subnet="subnet-0123456789abcdef0",
        security_group="sg-0123456789abcdef0",
        checkpoint_every=6,
        **small,
    )
    for outcome in outcomes.values():
        assert outcome.last.state == "succeeded", outcome.last.cause
        assert len(outcome.outputs["evaluate"]["results"]) == 2


def layout(source: Path, target: Path, pattern: str) -> Path:
    """Training files below train/, held-back ones below holdout/."""
    for path in sorted(source.glob(pattern)):
        part = target / ("holdout" if path.name.startswith("holdout") else "train")
        part.mkdir(parents=True, exist_ok=True)
        (part / path.name).write_bytes(path.read_bytes())
    return target
