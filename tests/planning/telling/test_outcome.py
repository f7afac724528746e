from __future__ import annotations

from typing import Any

import pytest

from orchestration.planning.telling.outcome import outcome

PIN: dict[str, Any] = {
    "cluster": {"instance_type": "ml.p5.48xlarge", "instance_count": 2},
    "predicted": {
        "hours": 8.0,
        "usd": 1012.8,
        "price": {"usd_per_hour": 63.3},
        "step_s": [14.0, 16.0, 18.3],
        "memory_gib": [50.0, 60.0, 72.0],
        "time_s": [25200.0, 28800.0, 32940.0],
        "cost_usd": [800.0, 1012.8, 1300.0],
    },
}


def job(**changes: Any) -> dict[str, Any]:
    """Return what SageMaker describes of a job that took what was predicted."""
    return {
        "TrainingJobName": "chat-train-1",
        "TrainingJobStatus": "Completed",
        "ResourceConfig": {"InstanceType": "ml.p5.48xlarge", "InstanceCount": 2},
        "TrainingTimeInSeconds": 28800,
        "BillableTimeInSeconds": 28800,
        "FinalMetricDataList": [
            {"MetricName": "orchestration:step_time_s", "Value": 16.0},
            {"MetricName": "orchestration:peak_memory_gib", "Value": 60.0},
        ],
        **changes,
    }


def told(pin: dict[str, Any] = PIN, **changes: Any) -> dict[str, str]:
    return {each.name: str(each) for each in outcome(pin, job(**changes), "r").figures}


def test_what_came_as_predicted_is_said_so() -> None:
    assert all(text.endswith(": as predicted") for text in told().values())
    assert list(told()) == ["step", "memory", "time", "cost"]


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [(31680, "10% slower, inside the interval"), (57600, "twice the time, outside the interval")],
)
def test_a_slower_run_is_compared_in_words(seconds: int, verdict: str) -> None:
    assert told(TrainingTimeInSeconds=seconds)["time"].endswith(verdict)


def test_the_bill_is_of_what_is_billed_on_every_instance() -> None:
    text = told(BillableTimeInSeconds=14400)["cost"]
    assert text.startswith("$506 (4 h billed of 2 at $63.30/h), predicted $1,013 ($800 to $1,300)")
    assert text.endswith("half the cost, outside the interval")


def test_a_job_on_other_instances_is_not_compared() -> None:
    other = {"InstanceType": "ml.p4d.24xlarge", "InstanceCount": 1}
    found = outcome(PIN, job(ResourceConfig=other), "r")
    assert found.figures == ()
    assert found.notes[0].startswith("ran on 1 x ml.p4d.24xlarge, but 2 x ml.p5.48xlarge")


def test_of_a_job_that_failed_only_steps_and_memory_count() -> None:
    found = outcome(PIN, job(TrainingJobStatus="Failed"), "r")
    assert [figure.name for figure in found.figures] == ["step", "memory"]
    assert "no whole training's" in found.notes[0]


def test_a_script_that_measures_nothing_is_told_how_to() -> None:
    found = outcome(PIN, job(FinalMetricDataList=[]), "r")
    assert [figure.name for figure in found.figures] == ["time", "cost"]
    assert "measured_steps" in found.notes[0]


def test_a_lock_file_without_intervals_still_tells_time_and_cost() -> None:
    kept = {key: PIN["predicted"][key] for key in ("hours", "usd", "price")}
    texts = told({**PIN, "predicted": kept}, BillableTimeInSeconds=57600)
    assert texts["time"] == "8 h with start and end, predicted 8 h: as predicted"
    assert texts["cost"].endswith("predicted $1,013: twice the cost")
