"""Pipelines, plans and reports in a notebook: whole HTML, whose texts stay text."""

from __future__ import annotations

import datetime
from typing import Any, Protocol
from xml.etree import ElementTree

from orchestration import Cluster, Parameter, Pipeline, TrainingJob, parameter
from orchestration.direct.outcomes import Outcome
from orchestration.direct.progress import StepRun
from orchestration.local.run.report import RunReport, StageReport
from tests.planning.search.questions import chosen, plans

SCRIPT = "<script>alert('&')</script>"
ALLOWED = {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td"}
SVG = "{http://www.w3.org/2000/svg}"
START = datetime.datetime(2026, 11, 23, 6, tzinfo=datetime.UTC)
LATER = START + datetime.timedelta(seconds=61.25)


class Shown(Protocol):
    """An object that notebooks show as HTML."""

    def _repr_html_(self) -> str: ...


def read(value: Shown) -> ElementTree.Element:
    """Return what a notebook is given, read strictly, and without anything but text and tables."""
    shown = ElementTree.fromstring(value._repr_html_())
    tags = {element.tag for element in shown.iter() if not element.tag.startswith(SVG)}
    assert tags <= ALLOWED
    return shown


def rows(shown: ElementTree.Element) -> list[list[str]]:
    return [[str(cell.text or "") for cell in row] for row in shown.iter("tr")]


def paragraphs(shown: ElementTree.Element) -> list[str]:
    return ["".join(each.itertext()) for each in shown.iter("p")]


def test_a_pipeline_shows_its_stages_and_what_runs_are_given() -> None:
    job: dict[str, Any] = {
        "image": parameter("image"),
        "cluster": Cluster(instance_type="ml.m5.xlarge"),
    }
    made = Pipeline(
        name="churn",
        description=SCRIPT,
        workspace="s3://bucket/churn",
        parameters={
            "image": Parameter(description=SCRIPT),
            "epochs": Parameter(type="number", default=3),
        },
        stages=[
            TrainingJob(name="first", **job),
            TrainingJob(name="second", **job, after=("first",)),
        ],
    )
    shown = read(made)
    boxes = [[str(text.text) for text in g.iter(f"{SVG}text")] for g in shown.iter(f"{SVG}g")]
    assert boxes == [["first", "training job"], ["second", "training job"]]
    assert paragraphs(shown) == ["Pipeline churn", SCRIPT]
    assert rows(shown)[:4] == [
        ["parameter", "type", "default", "description"],
        ["image", "string", "each run gives it", SCRIPT],
        ["epochs", "number", "3", ""],
        ["role", "string", "each run gives it", "ARN of the role that SageMaker assumes"],
    ]
    assert rows(shown)[4:] == [
        ["stage", "size"],
        *([name, "\n".join(told)] for name, told in made.facts().items()),
    ]
    assert len(rows(shown)) == 7


def test_plans_show_the_chosen_one_first() -> None:
    found = plans()
    shown = rows(read(found))
    best = chosen(found)
    assert shown[0][:3] == ["", "instances", "layout"]
    assert shown[1][:2] == ["chosen", f"{best.instance_count} x {best.instance_type}"]
    assert [row[0] for row in shown[2:]] == ["as good"] * len(shown[2:])
    assert rows(read(best))[1] == shown[1][1:]


def test_a_run_shows_stages_metrics_and_where_it_failed() -> None:
    report = RunReport(
        pipeline="churn",
        on="direct",
        run_id=SCRIPT,
        state="failed",
        error="JobFailed",
        cause=SCRIPT,
        started=START,
        ended=LATER,
        stages=(
            StageReport(
                name="train",
                state="failed",
                started=START,
                ended=LATER,
                job_names=("churn-train-0",),
                metrics={"loss": 0.25},
                log=("Traceback", SCRIPT),
            ),
            StageReport(name="deploy", state="not reached", started=None, ended=None),
        ),
        outputs=None,
        calls=(),
    )
    shown = read(report)
    assert rows(shown)[1:] == [
        ["train", "failed", "61.2 s", "loss = 0.25", "churn-train-0"],
        ["deploy", "not reached", "", "", ""],
    ]
    assert paragraphs(shown) == [
        f"churn on direct, run {SCRIPT}: failed, 61.2 s",
        f"JobFailed: {SCRIPT}",
        f"Traceback\n{SCRIPT}",
    ]


def test_the_end_of_a_direct_run_shows_steps_and_outputs() -> None:
    outcome = Outcome(
        workflow="churn",
        run_id="friday",
        state="succeeded",
        outputs={"train": {"model": SCRIPT}},
        steps=(StepRun("train.job", "succeeded", START, LATER),),
    )
    assert rows(read(outcome)) == [
        ["step", "state", "time"],
        ["train.job", "succeeded", "61.2 s"],
        ["stage", "output", "value"],
        ["train", "model", f'"{SCRIPT}"'],
    ]
