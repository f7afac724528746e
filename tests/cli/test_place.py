"""Whatever changes an account shows it first; one in another place than the pipeline is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from orchestration.cli.app import app
from orchestration.local import EmbeddedAws, Fault
from tests.cli.conftest import CODE, Command
from tests.cli.test_probe import PIPELINE as PROBED

ARN = "arn:aws:states:us-west-2:123456789012:execution:training:absent"
GIVEN = ("-p", "bucket=absent-workspace", "-p", "role=arn:aws:iam::123456789012:role/Absent")
DAYS = ("--from", "2026-01-01", "--to", "2026-01-02")
PIPELINE = f"{CODE}region: us-west-2\nschedule: {{cron: 0 6 * * *}}\n"
PROBE = (*GIVEN, "-p", "unused=x", "--aws", "--yes", "--jobs", 1)
CHANGING: dict[str, tuple[object, ...]] = {
    "approve": ("approve", ARN, "ok", "--workspace", "s3://absent-workspace/training"),
    "backfill": ("backfill", "training.yaml", *GIVEN, *DAYS, "--yes"),
    "deploy": ("deploy", "step-functions", "training.yaml", *GIVEN, "--yes"),
    "deploy airflow": ("deploy", "airflow", "training.yaml", *GIVEN, "--to", ".", "--yes"),
    "deploy airflow to S3": (
        *("deploy", "airflow", "training.yaml", *GIVEN, "--yes"),
        *("--to", "s3://absent-workspace/dags"),
    ),
    "destroy": ("destroy", "step-functions", "training.yaml", "--yes"),
    "destroy airflow": (
        *("destroy", "airflow", "training.yaml", "--yes"),
        *("--to", "s3://absent-workspace/dags"),
    ),
    "probe": ("probe", "tiny.yaml", *PROBE),
    "promote": ("promote", "training.yaml", "--yes"),
    "reject": ("reject", ARN, "ok", "--workspace", "s3://absent-workspace/training"),
    "rerun": ("rerun", ARN),
    "rollback": ("rollback", "training.yaml", "--yes"),
    "run": ("run", "training.yaml", *GIVEN, "--aws"),
    "start": ("start", "training.yaml", *GIVEN),
    "stop": ("stop", ARN),
    "upload": ("upload", "training.yaml", *GIVEN),
}
READING = {
    *("catalog", "check-script", "cost", "demo", "doctor", "explain", "export", "graph", "iam"),
    *("import", "init", "lint", "lock", "logs", "plan", "render", "runs", "schedule", "schema"),
    *("validate", "vendor-runtime", "watch"),
}
"""Commands that change no account, or none but an embedded one."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, orchestrate: Command) -> Path:
    """The pipelines that the commands name."""
    made = tmp_path_factory.mktemp("place")
    (made / "training.yaml").write_text(PIPELINE)
    (made / "tiny.yaml").write_text(PROBED.replace("us-east-1", "us-west-2"))
    for name in ("code", "src"):
        (made / name).mkdir()
        (made / name / "train.py").touch()
    (made / "elsewhere.yaml").write_text(f"{PIPELINE}role: {ELSEWHERE}\n")
    for name in ("training", "elsewhere"):
        assert orchestrate("lock", made / f"{name}.yaml").status == 0
    return made


def sent(aws: EmbeddedAws, seen: int = 0) -> list[str]:
    """The calls of commands, and not those that runs of other tests go on making."""
    every = aws.calls(include_jobs=True)
    return [call.operation for call in every if call.origin in (None, "direct")][seen:]


def test_each_command_is_known_to_change_an_account_or_not() -> None:
    commands = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined] # a group's
    changing = {str(words[0]) for words in CHANGING.values()}
    assert (commands - changing - READING, changing & READING) == (set(), set())
    assert changing | READING == commands


@pytest.mark.parametrize("name", CHANGING)
def test_the_account_comes_first_and_another_region_is_refused(
    account: EmbeddedAws,
    orchestrate: Command,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.chdir(folder)
    command, before = CHANGING[name], len(sent(account))
    refused = orchestrate(*command, "--region", "us-east-1")
    assert refused.status == 1
    assert "runs in us-west-2, and the session is for us-east-1" in refused.err
    assert sent(account, before) == []
    account.inject(
        Fault(service="sts", operation="GetCallerIdentity", error_code="AccessDenied", status=403)
    )
    unknown = orchestrate(*command)
    assert (unknown.status, "AWS did not identify the account" in unknown.err) == (1, True)
    assert sent(account, before) == ["GetCallerIdentity"]
    assert "account 123456789012, region us-west-2" in orchestrate(*command).err


ELSEWHERE = "arn:aws:iam::999999999999:role/Elsewhere"
OF_A_FILE = [name for name, words in CHANGING.items() if "training.yaml" in words]


@pytest.mark.parametrize("name", OF_A_FILE)
def test_another_account_than_that_of_the_role_is_refused(
    account: EmbeddedAws,
    orchestrate: Command,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.chdir(folder)
    before = len(sent(account))
    command = ["elsewhere.yaml" if word == "training.yaml" else word for word in CHANGING[name]]
    if GIVEN[3] in command:  # A pipeline that names its role has no parameter for it.
        place = command.index(GIVEN[3])
        del command[place - 1 : place + 1]
    refused = orchestrate(*command)
    assert refused.status == 1
    assert f"role {ELSEWHERE} is of account 999999999999" in refused.err
    assert sent(account, before) == ["GetCallerIdentity"]


@pytest.mark.parametrize("name", ["run", "start"])
def test_a_role_of_another_account_is_refused_as_a_run_s_value_too(
    account: EmbeddedAws,
    orchestrate: Command,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    monkeypatch.chdir(folder)
    before = len(sent(account))
    given = (f"role={ELSEWHERE}" if word == GIVEN[3] else word for word in CHANGING[name])
    refused = orchestrate(*given)
    assert refused.status == 1
    assert f"role {ELSEWHERE} is of account 999999999999" in refused.err
    assert set(sent(account, before)) == {"GetCallerIdentity"}


MODEL = f"""\
  model:
    kind: aws_call
    service: sagemaker
    operation: CreateModel
    request: {{ModelName: other, ExecutionRoleArn: "{ELSEWHERE}"}}
"""


@pytest.mark.parametrize("role", ["pipeline", "run", "job"])
def test_no_role_of_another_account_is_passed(
    account: EmbeddedAws, orchestrate: Command, folder: Path, role: str
) -> None:
    file = folder / f"{role}s.yaml"
    text = PIPELINE
    if role == "pipeline":
        text += f"role: {ELSEWHERE}\n"
    if role == "job":
        text = text.replace("stages:\n", f"stages:\n{MODEL}")
    file.write_text(text)
    own = ELSEWHERE if role == "run" else "arn:aws:iam::123456789012:role/Absent"
    given = [
        "-p",
        "bucket=absent-workspace",
        *([] if role == "pipeline" else ["-p", f"role={own}"]),
    ]
    for words in (
        ("deploy", "step-functions", file, "--dry-run"),
        ("export", "cloudformation", file, "--account", "123456789012"),
        ("iam", file, "--account", "123456789012"),
    ):
        refused = orchestrate(*words, *given)
        assert (refused.status, words[0]) == (1, words[0]), refused.out
        assert f"role {ELSEWHERE} is of account 999999999999" in refused.err
