"""``checkpoint_evaluation`` with a job that decides: its steps, its outputs, what is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from orchestration import PipelineError, ProcessingJob
from orchestration.backends import stepfunctions
from orchestration.backends.stepfunctions.events import counted
from orchestration.expressions import evaluate
from orchestration.graph import Call, Require, all_steps
from orchestration.stages.stage import SAMPLE
from tests.stages.test_evaluation import (
    IMAGE,
    OF_CHECKPOINTS,
    OF_JOB,
    OF_MODEL,
    STOP,
    TRAIN,
    beside,
    decided,
    env,
    lowered,
    names,
    pipeline,
    problems,
    step,
)

CHAMPION = {"champion": {"endpoint": "live"}}
MANY: dict[str, Any] = {f"metric_{number:02}": {} for number in range(20)}
SLICES = {"slices": {"language": {"minimum": 0.8}}}


def test_nothing_is_added_where_no_job_is_asked_for() -> None:
    assert not [name for name in names(lowered(OF_CHECKPOINTS)) if "verdict" in name]


@pytest.mark.parametrize("fields", [CHAMPION, SLICES, {"failures_allowed": 0}, {"report": {}}])
def test_a_job_decides_where_a_field_needs_it(fields: dict[str, Any]) -> None:
    made = lowered(OF_CHECKPOINTS, **fields)
    assert {"evaluate.decide", "evaluate.verdict"} <= set(names(made))
    jobs = [each for each in all_steps(made.graph) if isinstance(each, Call) and each.may_fail]
    assert "evaluate.each.job" in [each.name for each in jobs]
    shown = made.outputs["evaluate"]
    assert isinstance(shown, dict)
    assert "results" not in shown
    assert ("champion" in shown) == ("champion" in fields)


@pytest.mark.parametrize(
    ("region", "console"),
    [
        (None, "console.aws.amazon.com/s3/object/bucket?"),
        ("eu-west-1", "console.aws.amazon.com/s3/object/bucket?region=eu-west-1&"),
        ("cn-north-1", "console.amazonaws.cn/s3/object/bucket?region=cn-north-1&"),
    ],
)
def test_the_page_has_an_address_in_the_console(region: str | None, console: str) -> None:
    judge = pipeline(OF_CHECKPOINTS, report={"image": IMAGE}).stages[-1]
    link = judge.lower(replace(SAMPLE, region=region)).outputs["report_link"]
    key = "0123456789ab/evaluate/verdict/report.html"
    assert evaluate(link, env()) == f"https://{console}prefix={key}"


def test_the_job_is_told_the_rule_and_the_list() -> None:
    metrics = {"latency_ms": {"path": "timing.p95[0]", "maximum": 40}}
    made = lowered(OF_CHECKPOINTS, metrics=metrics, **SLICES, **CHAMPION, failures_allowed=2)
    known = env(list={"found": [{"Prefix": "c/1/"}]}, champion={"model": "s3://old/"})
    asked: Any = evaluate(step(made, "request").operation.request, known)
    assert asked["Key"] == "runs/0123456789ab/evaluate/reports/request.json"
    assert asked["Body"] == {
        "pipeline": "p",
        "stage": "evaluate",
        "run": "0123456789ab",
        "metric": "accuracy",
        "direction": "max",
        "failures_allowed": 2,
        "metrics": {
            "accuracy": {"path": ["metrics", "accuracy"]},
            "latency_ms": {"path": ["timing", "p95", 0], "maximum": 40},
        },
        "slices": {"language": {"path": ["slices", "language"], "minimum": 0.8}},
        "champion": {
            "source": "the endpoint live",
            "margin": 0,
            "confidence": 0.95,
            "model": "s3://old/",
        },
        "bucket": "bucket",
        "checkpoints": [{"Prefix": "c/1/"}],
    }


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        ({"report": {}}, ["EvaluationsFailed", "MetricNotFinite", "NoCheckpoints"]),
        (
            {**CHAMPION, **SLICES, "threshold": {"value": 0.9}},
            [
                *("EvaluationsFailed", "MetricNotFinite", "ChampionNotEvaluated"),
                *("NoCheckpoints", "ConstraintNotMet", "BelowThreshold"),
            ],
        ),
        ({**SLICES, **STOP}, ["EvaluationsFailed", "MetricNotFinite"]),
    ],
)
def test_each_outcome_that_fails_a_run_has_its_error(
    fields: dict[str, Any], errors: list[str]
) -> None:
    made = lowered(OF_CHECKPOINTS, **fields)
    required = [each for each in all_steps(made.graph) if isinstance(each, Require)]
    after = [each for each in required if each.name.partition(".")[2] != "usable"]
    stopped = [each.error for each in after if "champion." not in each.name]
    assert stopped == errors
    outcomes = {
        "EvaluationsFailed": "evaluations_failed",
        "MetricNotFinite": "not_finite",
        "ChampionNotEvaluated": "champion_not_evaluated",
        "NoCheckpoints": "no_checkpoint",
        "ConstraintNotMet": "bounds_missed",
        "BelowThreshold": "below_threshold",
    }
    for each in after:
        if each.error in outcomes and "champion." not in each.name:
            known = env(verdict={"outcome": outcomes[each.error], "explanation": "why"})
            assert evaluate(each.condition, known) is False
            assert evaluate(each.cause, known) == (
                "stage evaluate: why; the page about it is "
                "s3://bucket/runs/0123456789ab/evaluate/verdict/report.html"
            )


def test_the_definition_of_a_thousand_checkpoints_is_small() -> None:
    made = lowered(OF_CHECKPOINTS, max_checkpoints=1000, report={}, max_concurrency=40)
    definition = stepfunctions.render(made)
    assert len(json.dumps(definition)) < 100_000
    # A job that exists already is asked for, which is the longest way: 21 events for each.
    assert counted(definition, made).loops["evaluate.each"] == (1000, 4 + 1000 * 21)


@pytest.mark.parametrize(
    ("subject", "fields", "problem"),
    [
        (
            *(OF_CHECKPOINTS, {"max_checkpoints": 501}),
            "max_checkpoints: more than 500 need a report: {}, a job that decides",
        ),
        (
            *(OF_CHECKPOINTS, {"max_checkpoints": 500, "metrics": MANY}),
            "max_checkpoints: 500 results of about 870 bytes are more than the limit of 256 KiB, "
            "which Step Functions passes on; they need a report: {}, a job that decides",
        ),
        (
            *(OF_CHECKPOINTS, {"champion": {"inference_component": "c", "package_group": "g"}}),
            "champion.inference_component: is one of an endpoint; name that, too",
        ),
        (
            *(OF_CHECKPOINTS, {"champion": {}}),
            "champion.endpoint: is needed; or a package_group, not both",
        ),
        (
            *(OF_CHECKPOINTS, {"slices": {"language": {"minimum": 2, "maximum": 1}}}),
            "slices.language.minimum: is 2, more than the maximum of 1",
        ),
        (OF_MODEL, {"failures_allowed": 1}, "failures_allowed: there is one model; remove it"),
        (OF_JOB, CHAMPION, "champion: a training_job's own metrics decide, and no job is started"),
        (OF_CHECKPOINTS, {"champion": {"endpoint": "e", "margin": -1}}, "champion.margin:"),
    ],
)
def test_what_cannot_be_decided_is_refused(
    subject: dict[str, Any], fields: dict[str, Any], problem: str
) -> None:
    found = problems(subject, **fields)
    assert len(found) == 1
    assert problem in found[0]


def test_the_program_of_the_job_is_sent_with_the_sources() -> None:
    [evaluation] = [
        each for each in pipeline(OF_CHECKPOINTS, report={}).stages if each.name == "evaluate"
    ]
    sent = dict(evaluation.sources())
    assert sorted(sent) == ["report", "source"]
    assert sent["report"].entry_point == "__main__.py"


USE: dict[str, Any] = {
    "kind": "processing_job",
    "image": IMAGE,
    "command": ["true"],
    "cluster": {"instance_type": "ml.m5.large"},
}


def test_what_takes_the_best_must_say_for_which_outcome() -> None:
    use = {**USE, "inputs": {"model": {"ref": "evaluate.best_checkpoint"}}}
    champion = {"champion": {"endpoint": "live", "on_kept": "go_on"}}
    judged = decided("accuracy", **OF_CHECKPOINTS, **champion)
    with pytest.raises(PipelineError, match="'use' takes the best also where the champion is kept"):
        beside(TRAIN, evaluate=judged, use=use)
    only = {"when": {"equal": [{"ref": "evaluate.outcome"}, "promoted"]}}
    made = beside(TRAIN, evaluate=judged, use={**use, **only}).lower()
    assert "gate" not in " ".join(each.name for each in all_steps(made.graph))


def test_the_component_that_a_stage_serves_by_is_named() -> None:
    deploy = {
        "kind": "deployment",
        "model_data": "s3://bucket/m/",
        "image": IMAGE,
        "instance_type": "ml.m5.large",
        "endpoint_name": "live",
        "inference_component": {"memory_mib": 1024, "name": "cats"},
        "update": {},
    }
    judged = decided("accuracy", **OF_CHECKPOINTS, **CHAMPION)
    message = "champion.inference_component: stage 'deploy' serves by a component of the endpoint"
    with pytest.raises(PipelineError, match=message):
        beside(TRAIN, evaluate=judged, deploy=deploy)
    judged["champion"] = {"endpoint": "live", "inference_component": "cats"}
    beside(TRAIN, evaluate=judged, deploy=deploy).lower()


OUTCOMES = ("promoted", "champion_kept", "below_threshold", "bounds_missed", "no_checkpoint")


@pytest.mark.parametrize(
    ("fields", "stopped"),
    [
        ({"report": {}, "on_miss": "go_on"}, []),
        ({**CHAMPION, "on_miss": "go_on"}, ["champion_kept"]),
        ({"champion": {"endpoint": "live", "on_kept": "go_on"}, "on_miss": "go_on"}, []),
        ({"champion": {"endpoint": "live", "on_kept": "go_on"}, **STOP}, list(OUTCOMES[2:])),
        ({**CHAMPION, **STOP}, list(OUTCOMES[1:])),
    ],
)
def test_what_comes_after_goes_on_for_the_outcomes_that_the_stage_says(
    fields: dict[str, Any], stopped: list[str]
) -> None:
    stages = {each.name: each for each in pipeline(OF_CHECKPOINTS, **fields).stages}
    gate = stages["evaluate"].lower(SAMPLE).gate
    known = {each: env(verdict={"outcome": each}) for each in OUTCOMES}
    assert [
        each for each in OUTCOMES if gate is not None and not evaluate(gate.condition, known[each])
    ] == stopped


@pytest.mark.parametrize(
    ("fields", "field", "way_out"),
    [
        ({"report": {}, "on_miss": "go_on"}, "on_miss", "{ref: evaluate.outcome}, promoted]"),
        (
            {"threshold": {"value": 0.9, "on_miss": "go_on"}},
            "threshold.on_miss",
            "give it when: {ref: evaluate.passed}",
        ),
    ],
)
def test_what_takes_the_best_must_say_that_it_is_for_no_miss(
    fields: dict[str, Any], field: str, way_out: str
) -> None:
    use = {**USE, "inputs": {"model": {"ref": "evaluate.best_checkpoint"}}}
    judged = decided("accuracy", **OF_CHECKPOINTS, **fields)
    with pytest.raises(PipelineError) as refused:
        beside(TRAIN, evaluate=judged, use=use)
    [problem] = refused.value.problems
    assert problem.field == field
    assert "'use' takes the best also where it misses a bound" in problem.message
    assert way_out in problem.message
    beside(TRAIN, evaluate=judged, use={**use, "when": {"ref": "evaluate.passed"}})


def test_a_report_that_misses_its_threshold_may_go_on() -> None:
    threshold = {"number": "n", "direction": "max", "value": 1, "on_miss": "go_on"}
    report = {"result": "facts", "numbers": {"n": "n"}, "threshold": threshold}
    job = ProcessingJob.model_validate(
        {**USE, "name": "evaluate", "results": {"facts": {}}, "report": report}
    )
    made = job.lower(SAMPLE)
    assert (made.gate, [each.name for each in made.steps]) == (
        None,
        ["evaluate.job", "evaluate.report"],
    )
    assert evaluate(made.outputs["passed"], env(report={"n": 0})) is False
