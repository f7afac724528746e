"""Rules that AWS has only in words, on values that it is known to take or to refuse."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.checks.documented import RULE_SCHEDULE, SCHEDULE
from orchestration.checks.patterns import matches
from orchestration.checks.requests import violations

# Recorded on AWS by LocalStack's tests (test_scheduler.py, of March 2026), but for the last lines
# of each list, which are examples of AWS's guide and breaches of its rules.
TAKEN = (
    "cron(0-15/1 8-8 ? * 2,3,4,5,6,7 *)",
    "cron(30-30 13-13 ? * 2,4,6 *)",
    "cron(1-31/30 1-1 ? * 1,7 *)",
    "cron(0 18 ? * MON-FRI *)",
    "cron(*/15 * * * ? *)",
    "cron(0-59/10 0-23/2 ? * * *)",
    "at(2022-12-31T23:59:59)",
    "cron(15 10 ? * 6L 2022-2023)",
    "cron(0 9 ? * 3#2 *)",
    "cron(0 9 3W * ? *)",
    "cron(0 9 L * ? *)",
    "cron(0 0 1 JAN,JUL ? *)",
    "rate(5 minutes)",
)
REFUSED = (
    "cron(0 1 * * * *)",
    "cron(7 20 * * NOT *)",
    "cron(INVALID)",
    "cron(0 dummy ? * MON-FRI *)",
    "cron(71 8 1 * ? *)",
    "cron()",
    "rate(10 seconds)",
    "rate(10 years)",
    "rate()",
    "rate(10)",
    "rate(10 minutess)",
    "rate(foo minutes)",
    "rate(-10 minutes)",
    "rate( 10 minutes )",
    " rate(10 minutes)",
    "at(2021-12-31T23:59:59Z)",
    "at(2021-12-31)",
    "cron(0 6 * * MON)",
    "cron(0 6 ? * ? *)",
    "cron(0 6 ? * 8 *)",
    "rate(0 hours)",
)


@pytest.mark.parametrize("expression", TAKEN)
def test_expressions_that_the_scheduler_takes(expression: str) -> None:
    assert matches(SCHEDULE, expression)


@pytest.mark.parametrize("expression", REFUSED)
def test_expressions_that_the_scheduler_refuses(expression: str) -> None:
    assert not matches(SCHEDULE, expression)


def test_only_rules_ask_for_the_unit_of_the_number() -> None:
    rates = ("rate(1 hours)", "rate(2 hour)", "rate(1 hour)", "rate(2 hours)")
    assert [matches(RULE_SCHEDULE, each) for each in rates] == [False, False, True, True]
    assert all(matches(SCHEDULE, each) for each in rates)


def test_rules_take_commas_before_blanks_and_a_question_mark_for_the_hour() -> None:
    both = ("cron(0/5, 9-18, ?, *, MON-FRI, *)", "cron(* ? * * * *)", "")
    assert all(matches(RULE_SCHEDULE, each) for each in both)
    assert not any(matches(SCHEDULE, each) for each in both)
    assert not matches(RULE_SCHEDULE, "cron(* ? ? * * *)")
    assert not matches(RULE_SCHEDULE, "cron(0 1 * * * *)")


@pytest.mark.parametrize("pattern", [RULE_SCHEDULE, SCHEDULE])
def test_steps_may_be_longer_than_a_field_unless_every_minute_is_meant(pattern: str) -> None:
    long = ("0/60 * * * ? *", "5/120 0/48 * * ? *", "0 */24 * * ? *", "0 0 1/32 */13 ? 2027/500")
    assert all(matches(pattern, f"cron({each})") for each in long)
    assert not matches(pattern, "cron(*/60 * * * ? *)")
    assert not matches(pattern, "cron(0/x * * * ? *)")


@pytest.mark.parametrize("pattern", [RULE_SCHEDULE, SCHEDULE])
def test_long_expressions_are_read_in_one_pass(pattern: str) -> None:
    """A pattern that reads a text again and again has no answer within the life of a test."""
    for piece in ("*,", "1/1,", "1", "0 ", "0, ", " ", ",", "MON#1,"):
        assert not matches(pattern, f"cron({piece * 20_000}x)")
    for piece in ("0", "01", "1 ", "0 1"):
        assert not matches(pattern, f"rate({piece * 20_000} x)")


@pytest.mark.parametrize(
    ("name", "right"),
    [
        ("abc", True),
        ("my.bucket-1", True),
        ("a" * 63, True),
        ("1.2.3.4", False),
        ("1.2.3.4.5", True),
        ("ab", False),
        ("a" * 64, False),
        ("My-Bucket", False),
        ("my_bucket", False),
        ("a..b", False),
        ("-ab", False),
        ("ab-", False),
        ("xn--ab", False),
        ("sthree-ab", False),
        ("amzn-s3-demo-ab", False),
        ("ab-s3alias", False),
        ("ab--ol-s3", False),
        ("ab.mrap", False),
        ("ab--use1-az4--x-s3", True),
        ("ab--table-s3", False),
    ],
)
def test_names_of_new_buckets(name: str, right: bool) -> None:
    assert (violations("s3", "CreateBucket", {"Bucket": name}) == []) is right


@pytest.mark.parametrize(
    ("service", "operation", "request_", "message"),
    [
        (
            "stepfunctions",
            "StartExecution",
            {"stateMachineArn": "arn:aws:states:us-east-1:1:stateMachine:m", "name": "6:00"},
            "name: expected a name without spaces, brackets, control characters and any of",
        ),
        ("sns", "Publish", {"Message": ""}, "Message: has 0 characters; the least is 1"),
        (
            "sns",
            "Publish",
            {"Message": "text", "Subject": "a\nb"},
            "Subject: expected 1 to 100 characters without line breaks",
        ),
        (
            "ssm",
            "PutParameter",
            {"Name": "a b", "Value": "x"},
            "Name: expected a name of letters, digits and _.-/, got 'a b'",
        ),
        (
            "ssm",
            "PutParameter",
            {"Name": "a", "Value": "x" * 8193},
            "Value: has 8193 characters; the most is 8192",
        ),
        (
            "events",
            "PutRule",
            {"Name": "a", "ScheduleExpression": "rate(1 hours)"},
            "ScheduleExpression: expected rate(6 hours), or cron(…)",
        ),
        (
            "events",
            "PutEvents",
            {"Entries": [{"Source": "aws.s3", "DetailType": "Order", "Detail": "{}"}]},
            "Entries[0].Source: expected a source of your own, which does not begin with aws., got",
        ),
    ],
)
def test_what_aws_refuses_is_told_in_words(
    service: str, operation: str, request_: dict[str, Any], message: str
) -> None:
    [problem] = violations(service, operation, request_)
    assert str(problem).startswith(message)
    # A pattern of ours is not in AWS's words.
    assert "regular expression" not in problem.rule
