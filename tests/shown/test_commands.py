"""Every command that a page shows is run, in its reader's place, and prints what is shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestration.local import EmbeddedAws
from tests.shown.pages import ShownCommand, ShownFile, steps
from tests.shown.readers import BUCKETS, ROLE, ROOT, NotRun, Reader, differs

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def shared() -> dict[str, ShownFile]:
    return {
        step.name: step
        for page in PAGES
        for step in steps(page)
        if isinstance(step, ShownFile) and not step.hidden and page.name != "tutorial.md"
    }


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Reader]:
    with EmbeddedAws(time_scale=0.002) as aws:
        for bucket in BUCKETS:
            aws.client("s3").create_bucket(Bucket=bucket)
        aws.provide(roles=[ROLE])
        home = tmp_path / "home"
        home.mkdir()
        one = Reader(home, aws, shared())
        config = tmp_path / "config"
        config.write_text(
            "[profile research]\naws_access_key_id = x\naws_secret_access_key = x\n"
            f"region = us-east-1\nendpoint_url = {aws.endpoint_url}\n"
        )
        for name, value in one.environment.items():
            if name.startswith("AWS_"):
                monkeypatch.setenv(name, value)
        monkeypatch.delenv("AWS_SESSION_TOKEN", raising=False)
        monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.chdir(home)
        yield one


def run(page: Path, reader: Reader) -> list[str]:
    problems = []
    for step in steps(page):
        if isinstance(step, ShownFile):
            reader.save(step)
            continue
        try:
            status, printed = reader.perform(step.line)
        except NotRun as e:
            problems.append(f"$ {step.line}\nNOTRUN {e}")
            continue
        if status != step.status:
            problems.append(f"$ {step.line}\nexits {status}\n{printed}")
        elif step.output and (how := differs(step.output, printed)):
            problems.append(f"$ {step.line}\n{how}")
    return problems


@pytest.mark.parametrize("page", [p for p in PAGES if "```console" in p.read_text()], ids=lambda page: page.stem)
def test_page(page: Path, reader: Reader) -> None:
    assert "\n\n".join(run(page, reader)) == ""
