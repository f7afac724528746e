"""``approval``: a question to a person, checked before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration import Pipeline, PipelineError
from orchestration.backends import stepfunctions
from orchestration.deploy.account import Account
from orchestration.deploy.permissions import policy
from orchestration.graph import Call, Choose, Require, all_steps

ASK: dict[str, Any] = {"kind": "approval", "question": "Deploy?"}


def pipeline(**fields: Any) -> Pipeline:
    call = {"kind": "aws_call", "service": "sqs", "operation": "CreateQueue", "after": ["ok"]}
    stages = {"ok": {**ASK, **fields}, "go": {**call, "request": {"QueueName": "q"}}}
    return Pipeline.parse({"name": "p", "workspace": "s3://bucket/runs", "stages": stages})


def problems(**fields: Any) -> list[str]:
    with pytest.raises(PipelineError) as error:
        pipeline(**fields).lower()
    return [str(problem) for problem in error.value.problems]


def kinds(made: Pipeline) -> list[str]:
    steps = all_steps(made.lower().graph)
    return [s.name for s in steps if isinstance(s, Call | Choose | Require)]


def test_a_no_fails_the_run_unless_it_is_to_stop_it() -> None:
    assert kinds(pipeline()) == ["ok.ask", "ok.answer", "ok.approved", "go.call"]
    stopping = pipeline(on_reject="stop")
    assert kinds(stopping) == ["ok.ask", "ok.answer", "ok.passed_go", "go.call"]


def test_a_question_is_announced_before_the_wait() -> None:
    made = pipeline(notify={"sns_topic": "arn:aws:sns:us-east-1:123456789012:t"})
    assert kinds(made)[:3] == ["ok.ask", "ok.announce", "ok.answer"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (
            {"answer_within_h": 0},
            "stages.ok.answer_within_h: is 0; the least is 1",
        ),
        (
            {"answer_within_h": 721},
            "stages.ok.answer_within_h: is 721; the most is 720",
        ),
        ({"on_reject": "retry"}, "stages.ok.on_reject: expected 'fail', 'stop' or 'go_on', got"),
        (
            {"question": 3},
            "stages.ok.question: expected text or a reference, got 3; put it in quotes",
        ),
        (
            {"question": {"ref": "train.job_name"}},
            "stages.ok.question: there is no stage 'train'",
        ),
        ({"notify": {}}, "stages.ok.notify.sns_topic: is required: Its ARN"),
    ],
)
def test_mistakes_are_found_when_it_is_loaded(fields: Any, expected: str) -> None:
    assert [problem[: len(expected)] for problem in problems(**fields)] == [expected]


def test_a_state_machine_waits_for_a_token_an_hour_at_a_time() -> None:
    definition: Any = stepfunctions.render(pipeline(answer_within_h=30).lower())
    waiting = definition["States"]["ok-answer-Wait"]
    assert waiting["Resource"].endswith("aws-sdk:s3:putObject.waitForTaskToken")
    assert waiting["TimeoutSeconds"] == 3600
    rules = definition["States"]["ok-answer-Status"]["Choices"]
    assert any("Polls >= 30 " in rule["Condition"] for rule in rules)


def test_the_longest_wait_leaves_room_for_the_events_of_others() -> None:
    definition: Any = stepfunctions.render(pipeline(answer_within_h=720).lower())
    waiting = definition["States"]["ok-answer-Wait"]
    assert waiting["TimeoutSeconds"] * 168 >= 720 * 3600


def test_a_run_may_touch_its_question_and_its_token_only() -> None:
    account = Account(id="123456789012", region="us-east-1", partition="aws")
    document = policy(pipeline().lower(), account, [{"role": "role"}])
    s3 = [each for each in document["Statement"] if each["Action"][0].startswith("s3:")]
    place = "arn:aws:s3:::bucket/runs/*/ok"
    assert [(each["Action"], each["Resource"]) for each in s3] == [
        (["s3:GetObject", "s3:PutObject"], [f"{place}/approval.json"]),
        (["s3:PutObject"], [f"{place}/token.json"]),
    ]
