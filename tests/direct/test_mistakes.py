"""Natural mistakes that only a run finds: each ends with its error, the object and a way out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import orchestration
from orchestration import OrchestrationError, Pipeline, RunError
from orchestration.explanations import explained, hint
from orchestration.local import EmbeddedAws
from tests.direct.conftest import ROLE
from tools.docs import errors

MISTAKES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).parents[1] / "data" / "mistakes.yaml").read_text("utf-8")
)
SCALE = 0.002
USUAL = {"bucket": "workspace", "data": "s3://incoming/set", "role": ROLE}
# What the scripts of evaluations begin with.
SCRIPT = """\
import argparse, json, pathlib, sys

def read():
    parser = argparse.ArgumentParser()
    for name in ("checkpoint", "data", "output"):
        parser.add_argument(f"--{name}", type=pathlib.Path)
    return parser.parse_args()

def report(text):
    (read().output / "evaluation.json").write_text(text)

"""


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=SCALE) as aws:
        provide(aws)
        yield aws


def provide(aws: EmbeddedAws) -> None:
    """Make what the mistakes are made beside: buckets, data, a role."""
    s3 = aws.client("s3")
    for bucket in ("workspace", "incoming"):
        s3.create_bucket(Bucket=bucket)
    for key in ("set/one.csv", "checkpoints/epoch-1/weights"):
        s3.put_object(Bucket="incoming", Key=key, Body=b"1")
    aws.provide(roles=[ROLE])


def pipeline(case: dict[str, Any], folder: Path) -> Pipeline:
    (folder / "src").mkdir()
    (folder / "src" / "script.py").write_text(SCRIPT + case.get("script", "") + "\n")
    described = {
        "name": "mistakes",
        "parameters": {"bucket": {}, "data": {}},
        "workspace": {"join": ["s3://", {"parameter": "bucket"}, "/mistakes"]},
        "stages": case["stages"],
    }
    if "markets" in case.get("given", {}):
        described["parameters"]["markets"] = {"type": "array"}
    path = folder / "mistakes.yaml"
    path.write_text(yaml.safe_dump(described))
    return Pipeline.load(path)


def way_out(error: str, cause: str) -> str:
    """Return what a person reads who has met an error: its cause, and the page that is named."""
    known = explained(error)
    assert hint(error) is not None
    return cause if known is None else f"{cause} {known.cure}"


def logged(aws: EmbeddedAws) -> str:
    logs = aws.client("logs")
    groups = [group["logGroupName"] for group in logs.describe_log_groups()["logGroups"]]
    events = [
        event["message"]
        for group in groups
        for event in logs.filter_log_events(logGroupName=group)["events"]
    ]
    return "\n".join(events)


@pytest.mark.slow
@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case["mistake"].replace(" ", "-"))
def test_a_mistake_is_named_with_its_object_and_a_way_out(
    case: dict[str, Any], aws: EmbeddedAws, tmp_path: Path
) -> None:
    whole = pipeline(case, tmp_path)
    known = {spec.name for spec in whole.parameter_specs()}
    given = {name: value for name, value in USUAL.items() if name in known}
    given |= case.get("given", {})
    with pytest.raises(OrchestrationError) as caught:
        orchestration.run(whole, given, session=aws, run_id=tmp_path.name)
    error = caught.value
    name = error.error if isinstance(error, RunError) else type(error).__name__
    text = " ".join(str(error).split())
    assert name == case["error"], text
    assert [words for words in case["cause"] if words not in text] == [], text
    assert [words for words in case["way_out"] if words not in way_out(name, text)] == []
    log = logged(aws) if "log" in case else ""
    assert [words for words in case.get("log", ()) if words not in log] == []


def test_every_name_has_a_page_with_cause_and_cure() -> None:
    told = {case["error"] for case in MISTAKES}
    pages, table = errors.pages(), errors.PAGE.read_text("utf-8")
    for name in told:
        known = explained(name)
        assert known is not None
        assert "## What to do" in pages[f"errors/{known.name}.md"]
        assert f"`{name}`" in table or name in known.also


def test_there_are_forty() -> None:
    assert len({case["mistake"] for case in MISTAKES}) >= 40
