"""``orchestrate explain``, and the errors of runs that name it."""

from __future__ import annotations

import json

from typer.testing import CliRunner, Result

from orchestration.cli.app import app
from orchestration.explanations import explanations, markdown


def said(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments])


def test_an_error_is_explained_as_markdown_where_there_is_no_terminal() -> None:
    shown = said("SageMaker.ThrottlingException")
    text = markdown(explanations()["Throttling"])
    assert (shown.exit_code, shown.stdout) == (0, text)
    assert "## What to do" in text
    assert "Read on: `docs/limits.md`." in text


def test_an_error_is_explained_as_json() -> None:
    shown = json.loads(said("NoCheckpoints", "--json").stdout)
    assert shown == explanations()["NoCheckpoints"].to_json()
    assert shown["raised_by"] == ["checkpoint_evaluation"]


def test_all_errors_are_listed_one_a_line() -> None:
    lines = said().stdout.splitlines()
    assert [line.split()[0] for line in lines] == [*explanations()]
    assert [each["name"] for each in json.loads(said("--json").stdout)] == [*explanations()]


def test_an_unknown_error_says_what_was_meant_or_where_it_is_from() -> None:
    slip = said("NoChekpoints")
    assert (slip.exit_code, slip.stdout) == (1, "")
    assert slip.stderr.endswith("'NoChekpoints'; did you mean 'NoCheckpoints'?\n")
    other = said("TooFewRows", "--json")
    assert other.exit_code == 1
    assert "`fail` stages" in json.loads(other.stdout)["message"]
