"""``approve`` and ``reject``: a question of a run, found by whatever names the run."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from orchestration.expressions.evaluate import run_token
from orchestration.local import EmbeddedAws
from tests.cli.conftest import Command
from tests.patience import PATIENCE_S

WORKSPACE = "s3://asking-workspace/runs"
RUN = "0123456789ab"


@pytest.fixture
def account(aws: EmbeddedAws, monkeypatch: pytest.MonkeyPatch) -> EmbeddedAws:
    for name, value in aws.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
    aws.client("s3").create_bucket(Bucket="asking-workspace")
    return aws


def ask(aws: EmbeddedAws, run: str) -> None:
    aws.client("s3").put_object(
        Bucket="asking-workspace",
        Key=f"runs/{run}/ok/approval.json",
        Body=json.dumps({"state": "asked", "question": "Deploy?"}),
        Metadata={"state": "asked"},
    )


def answer_of(aws: EmbeddedAws, run: str) -> tuple[str, str, str]:
    key = f"runs/{run}/ok/approval.json"
    found = aws.client("s3").get_object(Bucket="asking-workspace", Key=key)
    document = json.loads(found["Body"].read())
    return found["Metadata"]["state"], document["question"], document["comment"]


def test_a_question_is_answered_once(account: EmbeddedAws, orchestrate: Command) -> None:
    place = f"{WORKSPACE}/{RUN}"
    early = orchestrate("approve", place, "ok", "--json")
    assert early.status == 1
    assert "has not asked for an answer (yet)" in early.document["message"]
    ask(account, RUN)
    said = orchestrate("reject", place, "ok", "--comment", "nicht so", "--json")
    assert (said.status, said.document["state"]) == (0, "rejected")
    assert answer_of(account, RUN) == ("rejected", "Deploy?", "nicht so")
    late = orchestrate("approve", place, "ok")
    assert late.status == 1
    assert "was rejected by arn:aws:" in late.err
    account.client("s3").delete_object(
        Bucket="asking-workspace", Key=f"runs/{RUN}/ok/approval.json"
    )
    # Runs of Airflow and of this process, by their names.
    token = run_token("ship/monday")
    ask(account, token)
    assert orchestrate("approve", "ship/monday", "ok", "--workspace", WORKSPACE).status == 0
    assert answer_of(account, token)[0] == "approved"
    unknown = "arn:aws:states:us-east-1:123456789012:execution:ship:nothing"
    lost = orchestrate("approve", unknown, "ok", "--workspace", WORKSPACE)
    assert (lost.status, "is not known" in lost.err) == (1, True)
    vague = orchestrate("approve", "monday", "ok")
    assert (vague.status, "expected the S3 URI of the run" in vague.err) == (1, True)


SHIP = """\
name: ship
region: us-east-1
workspace: s3://bucket/runs
stages:
  ok:
    kind: approval
    question: Deploy?
"""


@pytest.fixture
def ship(tmp_path: Path) -> Path:
    path = tmp_path / "ship.yaml"
    path.write_text(SHIP)
    return path


def test_a_run_is_answered_beforehand(orchestrate: Command, ship: Path) -> None:
    said = orchestrate("run", ship, "--on", "step-functions", "--reject", "ok", "--json")
    assert (said.status, said.document["error"]) == (1, "Rejected")
    assert "ok asks: Deploy?" in said.err


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), "stage 'ok' asks a person, and nobody is at a terminal here"),
        (("--approve", "okay"), "stage 'okay' asks nobody; did you mean 'ok'?"),
    ],
)
def test_a_run_that_nobody_could_answer_does_not_start(
    orchestrate: Command, ship: Path, options: tuple[str, ...], expected: str
) -> None:
    said = orchestrate("run", ship, *options)
    assert said.status == 2
    assert expected in " ".join(said.err.replace("│", " ").split())


def test_whoever_started_a_run_is_asked_at_the_terminal(ship: Path) -> None:
    mine, theirs = pty.openpty()
    command = [sys.executable, "-m", "orchestration.cli", "run", str(ship), "--json"]
    process = subprocess.Popen(
        command, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True
    )
    os.close(theirs)
    said = ""
    for question, reply in (("Approve?", "y\n"), ("Comment", "looks good\n")):
        while question not in said:
            said += os.read(mine, 1000).decode()
        os.write(mine, reply.encode())
    out, _ = process.communicate(timeout=PATIENCE_S)
    os.close(mine)
    ended = json.loads(out)
    assert ended["state"] == "succeeded", ended
    assert ended["outputs"]["ok"]["comment"] == "looks good"
