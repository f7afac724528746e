"""One text about a run's end, whoever says it."""

from __future__ import annotations

import json
import re
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestration.local.engine.deliveries import message_of
from orchestration.notices import FAILURES, Notice, template

ARN = "arn:aws:states:us-east-1:123456789012:execution:digits:r"


def event(**detail: Any) -> dict[str, Any]:
    return {"detail": {"executionArn": ARN, "name": "r", "status": "FAILED", **detail}}


def by_template(event: dict[str, Any], *, failed: bool = True) -> dict[str, Any]:
    made = template("digits", failed=failed, region="us-east-1", partition="aws")
    transformer = {"InputPathsMap": dict(made.paths), "InputTemplate": made.text}
    message = message_of({"InputTransformer": transformer}, event)
    assert message is not None
    return dict(json.loads(message))


@given(st.none() | st.text(), st.none() | st.text())
def test_a_template_and_a_message_say_the_same(error: str | None, cause: str | None) -> None:
    """Whatever stands in a cause: quotation marks, new lines, placeholders, nothing."""
    notice = Notice(pipeline="digits", run="r", state="FAILED", error=error, cause=cause)
    said, filled = json.loads(notice.message), by_template(event(error=error, cause=cause))
    assert filled.pop("link").endswith(f"#/v2/executions/details/{ARN}")
    detail = filled.pop("detail")
    assert {name: detail[name] for name in said["detail"]} == said.pop("detail")
    assert filled == said


def test_an_event_without_error_and_cause_makes_a_message() -> None:
    assert by_template(event())["state"] == "FAILED"


def test_of_a_success_there_is_no_detail() -> None:
    filled = by_template(event(status="SUCCEEDED", output="{}"), failed=False)
    notice = Notice(pipeline="digits", run="r", state="SUCCEEDED", link=filled["link"])
    assert json.loads(notice.message) == filled


def test_links_lead_to_the_console_of_the_partition() -> None:
    made = template("digits", failed=False, region="cn-north-1", partition="aws-cn")
    assert "https://cn-north-1.console.amazonaws.cn/states/home?region=cn-north-1#/" in made.text


@settings(max_examples=20)
@given(st.text(min_size=1, max_size=3), st.sampled_from([10, 40_000, 300_000]))
def test_a_message_is_within_what_sns_takes(text: str, times: int) -> None:
    notice = Notice(pipeline="d", run="r" * 250, state="FAILED", error="E", cause=text * times)
    written = json.dumps({"default": notice.message})
    assert len(written) <= 262_144
    cause = json.loads(notice.message)["detail"]["cause"]
    assert cause == text * times or (text * times).startswith(cause.removesuffix(" …"))


def test_a_subject_is_one_that_sns_takes() -> None:
    for state in (*FAILURES, "SUCCEEDED"):
        subject = Notice(pipeline="a" * 32, run="ü\n", state=state).subject
        assert re.fullmatch(r"[ -~]{1,99}", subject)
