"""``iam``: the least policies, for people and for programs, without asking AWS."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Command

ROLE = "arn:aws:iam::123456789012:role/SageMaker"
PLACE = ("--account", "123456789012", "--region", "us-east-1")
VALUES = ("-p", "bucket=workspace", "-p", f"role={ROLE}")


def test_each_statement_is_printed_with_the_steps_that_need_it(
    orchestrate: Command, training: Path
) -> None:
    said = orchestrate("iam", training, *PLACE, *VALUES, "--for", "machine", "--for", "jobs")
    assert said.status == 0
    assert said.err == "account 123456789012, region us-east-1\n"
    lines = said.out.splitlines()
    heads = [line for line in lines if not line.startswith(" ")]
    assert heads == [
        "machine: arn:aws:iam::123456789012:role/training-us-east-1-states",
        f"jobs: {ROLE}",
    ]
    assert "  TrainingJobs: needed by train.job" in lines
    assert f"      on {ROLE}" in lines
    assert "      if StringEquals iam:PassedToService: sagemaker.amazonaws.com" in lines
    source = "arn:aws:states:us-east-1:123456789012:stateMachine:training"
    assert f"  assumed by states.amazonaws.com for {source}" in lines


def test_json_has_the_policies_as_iam_takes_them(orchestrate: Command, training: Path) -> None:
    done = orchestrate("iam", training, *PLACE, *VALUES, "--json").document
    every = {each["for"]: each for each in done["identities"]}
    assert set(every) == {"machine", "jobs", "companion", "deployer", "doctor", "airflow"}
    jobs = every["jobs"]
    assert jobs["name"] == ROLE
    assert jobs["policy"]["Version"] == "2012-10-17"
    sids = [statement["Sid"] for statement in jobs["policy"]["Statement"]]
    assert list(jobs["needed_by"]) == sids
    assert jobs["trust"]["Statement"][0]["Principal"] == {"Service": "sagemaker.amazonaws.com"}
    assert every["deployer"]["trust"] is None


def test_missing_values_and_unknown_names_are_refused(orchestrate: Command, training: Path) -> None:
    missing = orchestrate("iam", training, *PLACE)
    assert missing.status == 1
    assert "parameter 'bucket' has no value" in missing.err
    unknown = orchestrate("iam", training, *PLACE, *VALUES, "--for", "nobody")
    assert unknown.status == 2
    assert "expected machine, jobs" in unknown.err
    wrong = orchestrate("iam", training, "--account", "12", "--region", "us-east-1", *VALUES)
    assert wrong.status == 2
    nowhere = orchestrate("iam", training, "--account", "123456789012", *VALUES)
    assert nowhere.status == 1
    assert "the region is missing" in nowhere.err
