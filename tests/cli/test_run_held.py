"""The account of a run on a terminal stays open until Ctrl-C, or until nobody uses it."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import boto3
import pytest

from orchestration.cli.commands.embedded.holding import hold
from orchestration.local import EmbeddedAws
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.slow
_PIPELINE = """\
name: held
parameters: {data: {}}
workspace: s3://held-workspace/held
stages:
  staging: {kind: data_staging, source: {parameter: data}}
"""


def _until(terminal: int, ending: str) -> str:
    text = ""
    while ending not in text:
        try:
            text += os.read(terminal, 4096).decode(errors="replace")
        except OSError:
            pytest.fail(f"ended before {ending!r}: {text}")
    return text


def test_the_account_is_open_until_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "held.yaml").write_text(_PIPELINE)
    (tmp_path / "set").mkdir()
    (tmp_path / "set/one.csv").write_text("1\n")
    ours, theirs = pty.openpty()
    command = [
        *(sys.executable, "-m", "orchestration.cli", "run", "held.yaml", "--keep"),
        *("--upload", "set=s3://incoming/set", "-p", "data=s3://incoming/set"),
    ]
    wide = {**os.environ, "COLUMNS": "400"}
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        env=wide,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=lambda: os.close(os.open(os.ttyname(0), os.O_RDWR)),
    )
    os.close(theirs)
    try:
        said = _until(ours, "without a request")
        url = re.search(r"AWS_ENDPOINT_URL=(http://127\.0\.0\.1:\d+)", said)
        assert url is not None, said
        keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
        s3 = boto3.client("s3", endpoint_url=url[1], region_name="us-east-1", **keys)
        assert {"incoming", "held-workspace"} <= {b["Name"] for b in s3.list_buckets()["Buckets"]}
        os.write(ours, b"\x03")
        assert "the account has ended" in _until(ours, "the account has ended")
        assert process.wait(timeout=PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_an_account_that_nobody_uses_ends_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedAws() as aws:
        hold(aws, idle_s=0.2)
    assert "the account has ended" in capsys.readouterr().err
