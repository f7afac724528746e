"""``export``: templates, for people and for programs, without asking AWS."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Command

VALUES = (
    "-p",
    "bucket=workspace",
    "-p",
    "role=arn:aws:iam::${AWS::AccountId}:role/${RoleName}",
)


def test_a_template_is_written_and_compared(
    orchestrate: Command, training: Path, tmp_path: Path
) -> None:
    file = tmp_path / "stack" / "training.yaml"
    done = orchestrate("export", "cloudformation", training, *VALUES, "-o", file)
    assert (done.status, done.out) == (0, "")
    assert f"{file} written" in done.err
    template = yaml.safe_load(file.read_text())
    assert list(template["Parameters"]) == ["RoleName"]
    fresh = orchestrate("export", "cloudformation", training, *VALUES, "-o", file, "--check")
    assert fresh.status == 0
    stale = orchestrate(
        "export", "cloudformation", training, *VALUES, "-o", file, "--check", "--sweep-every-h", "5"
    )
    assert stale.status == 1
    assert "rate(5 hours)" in stale.out


def test_without_a_file_it_is_printed(orchestrate: Command, training: Path) -> None:
    said = orchestrate("export", "terraform", training, *VALUES)
    assert said.status == 0
    assert list(json.loads(said.out)["variable"]) == ["role_name"]


@pytest.mark.parametrize("form", ["cloudformation", "terraform"])
def test_json_holds_the_template(orchestrate: Command, training: Path, form: str) -> None:
    done = orchestrate("export", form, training, *VALUES, "--json").document
    assert done["format"] == form
    assert done["parameters"] == ["RoleName"]
    assert done["size_bytes"] > 1000
    assert {"Resources", "resource"} & done["template"].keys()


def test_definitions_are_written_beside_the_template(
    orchestrate: Command, training: Path, tmp_path: Path
) -> None:
    place = ("--definitions", "s3://templates/asl")
    file = tmp_path / "training.json"
    done = orchestrate("export", "cloudformation", training, *VALUES, "-o", file, *place)
    assert done.status == 0
    properties = json.loads(file.read_text())["Resources"]["StateMachine"]["Properties"]
    name = properties["DefinitionS3Location"]["Key"].removeprefix("asl/")
    assert "States" in json.loads((tmp_path / name).read_text())
    assert f"it belongs at s3://templates/asl/{name}" in done.err


def test_what_cannot_be_meant_is_refused(orchestrate: Command, training: Path) -> None:
    missing = orchestrate("export", "cloudformation", training)
    assert missing.status == 1
    assert "parameter 'bucket' has no value" in missing.err
    for arguments, said in (
        (("--account", "12"), "expected 12 digits"),
        (("--definitions", "s3://a/b"), "needs a file"),
        (("--check",), "needs a file to compare"),
    ):
        wrong = orchestrate("export", "cloudformation", training, *VALUES, *arguments)
        assert wrong.status == 2
        assert said in wrong.err
    wrong = orchestrate(
        "export", "terraform", training, *VALUES, "--definitions", "s3://a/b", "-o", "x.tf.json"
    )
    assert wrong.status == 2
    assert "is for CloudFormation" in wrong.err


_SCHEDULE = "schedule: {cron: 0 6 * * *, start: 2026-11-01T00:00"


@pytest.mark.parametrize("form", ["cloudformation", "terraform"])
@pytest.mark.parametrize(("ending", "warned"), [(", catchup: true}", 1), ("}", 0)])
def test_an_exported_schedule_that_catches_up_says_who_starts_what_it_missed(
    orchestrate: Command, training: Path, form: str, ending: str, warned: int
) -> None:
    training.write_text(f"{training.read_text()}\n{_SCHEDULE}{ending}\n")
    done = orchestrate("export", form, training, *VALUES, "--json").document
    told = [each for each in done["warnings"] if "orchestrate backfill" in each]
    assert len(told) == warned
    assert all("each run since 2026-11-01T00:00Z that is missing" in each for each in told)
    said = orchestrate("export", form, training, *VALUES, "-o", training.parent / "made.json")
    assert [f"warning: {each}" in said.err for each in told] == [True] * warned
    assert ("orchestrate backfill" in said.err) is bool(warned)
