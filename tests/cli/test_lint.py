"""``lint``: findings with paths into the file, and exit statuses to rely on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Command

WRONG = {
    "StartAt": "Train",
    "States": {
        "Train": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:sagemakr:createTrainingJob",
            "Next": "Tset",
        },
        "Test": {"Type": "Succeed"},
    },
}
YAML = """\
StartAt: Decide
States:
  Decide:
    Type: Choice
    Choices:
      - {Variable: $.done, BooleanEquals: true, Next: End}
  End: {Type: Succeed}
"""


@pytest.fixture
def wrong(tmp_path: Path) -> str:
    path = tmp_path / "wrong.asl.json"
    path.write_text(json.dumps(WRONG))
    return str(path)


@pytest.fixture
def doubtful(tmp_path: Path) -> str:
    path = tmp_path / "doubtful.asl.yaml"
    path.write_text(YAML)
    return str(path)


def test_errors_are_told_with_their_paths_and_the_way_out(orchestrate: Command, wrong: str) -> None:
    said = orchestrate("lint", wrong)
    assert said.status == 1
    assert said.out == ""
    assert f"{wrong}: 2 errors" in said.err
    assert "/States/Train/Next: there is no state 'Tset'; did you mean 'Test'?" in said.err
    assert "aws-sdk has no service sagemakr; did you mean 'sagemaker'?" in said.err


def test_warnings_alone_leave_a_definition_valid(orchestrate: Command, doubtful: str) -> None:
    said = orchestrate("lint", doubtful)
    assert (said.status, said.out) == (0, f"{doubtful}: valid\n")
    assert "/States/Decide: has no Default" in said.err


def test_json_is_one_document_for_all_files(
    orchestrate: Command, wrong: str, doubtful: str
) -> None:
    said = orchestrate("lint", "--json", wrong, doubtful)
    assert said.status == 1
    assert [file["valid"] for file in said.document["files"]] == [False, True]
    warning = said.document["files"][1]["findings"][0]
    assert (warning["severity"], warning["rule"]) == ("warning", "no-default")


def test_our_own_definitions_have_no_finding(orchestrate: Command) -> None:
    files = sorted(str(path) for path in (ROOT / "statemachines").glob("*.asl.json"))
    said = orchestrate("lint", *files)
    assert (said.status, said.err) == (0, "")
    assert len(said.out.splitlines()) == len(files) >= 4


def test_a_file_that_is_not_there_is_a_wrong_command(orchestrate: Command, wrong: str) -> None:
    said = orchestrate("lint", "nowhere.asl.json", wrong)
    assert said.status == 2
    assert "nowhere.asl.json: cannot be read" in said.err
    assert "2 errors" in said.err


def test_what_is_no_definition_is_an_error(orchestrate: Command, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"StartAt": ')
    (tmp_path / "template.json").write_text('{"Resources": {}}')
    said = orchestrate("lint", str(tmp_path / "broken.json"), str(tmp_path / "template.json"))
    assert said.status == 1
    assert "cannot be read as JSON" in said.err
    assert "lint the definition inside of it" in said.err
