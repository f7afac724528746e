"""Who is told is checked while a pipeline is written."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Notify, PipelineError, Topics, parameter
from orchestration.graph import NotifySpec
from tests.deploy.pipelines import copying

TOPIC = "arn:aws:sns:us-east-1:123456789012:alerts"


def test_one_topic_or_several() -> None:
    pipeline = copying(
        notify={"on_failure": {"sns_topic": TOPIC}, "on_success": {"sns_topic": [TOPIC]}}
    )
    assert pipeline.notify == Notify(
        on_failure=Topics(sns_topic=(TOPIC,)), on_success=Topics(sns_topic=(TOPIC,))
    )
    assert pipeline.lower().notify == NotifySpec(on_failure=(TOPIC,), on_success=(TOPIC,))


@pytest.mark.parametrize(
    ("notify", "problem"),
    [
        pytest.param({}, "notify: expected on_failure, on_success or both", id="nobody"),
        pytest.param(
            {"on_failure": {"sns_topic": "alerts"}},
            "notify.on_failure.sns_topic: expected arn:aws:sns:<region>:<account>:<topic>, "
            "got 'alerts'",
            id="a name",
        ),
        pytest.param(
            {"on_failure": {"sns_topic": f"{TOPIC}.fifo"}},
            "is a FIFO topic, and EventBridge delivers to standard ones",
            id="FIFO",
        ),
        pytest.param(
            {"on_failure": {"sns_topic": {"parameter": "data"}}},
            "before any run has parameters",
            id="a reference",
        ),
        pytest.param(
            {"on_failure": {"sns_topic": parameter("data")}},
            "before any run has parameters",
            id="an expression",
        ),
        pytest.param(
            {"on_success": {"sns_topic": []}}, "expected 1 to 5 topics, got 0", id="no topic"
        ),
        pytest.param(
            {"on_success": {"sns_topic": [f"{TOPIC}{n}" for n in range(6)]}},
            "expected 1 to 5 topics, got 6",
            id="six topics",
        ),
        pytest.param(
            {"on_success": {"sns_topic": [TOPIC, TOPIC]}}, "names a topic twice", id="twice"
        ),
        pytest.param(
            {"on_end": {"sns_topic": TOPIC}}, "notify.on_end", id="an end that there is not"
        ),
    ],
)
def test_what_can_not_be_told_is_refused(notify: Any, problem: str) -> None:
    with pytest.raises(PipelineError) as refused:
        copying(notify=notify)
    assert problem in str(refused.value)


def test_a_topic_of_another_region_is_refused() -> None:
    with pytest.raises(PipelineError) as refused:
        copying(region="eu-west-1", notify={"on_failure": {"sns_topic": TOPIC}})
    assert f"notify.on_failure.sns_topic: {TOPIC} is in us-east-1" in str(refused.value)
