"""What the guide to migrating shows: each `before` is imported, and its `after` trains the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

import pytest

from orchestration import Pipeline
from orchestration.graph import Call, all_steps
from tests.cli.conftest import ROOT, Command

GUIDE = (ROOT / "docs" / "migrating.md").read_text("utf-8")
FILES = dict(re.findall(r"```\w+\n# (\S+)\n(.*?)```", GUIDE, re.DOTALL))
IMPORTS = re.findall(r"\$ orchestrate import (\S+) -o imported\.yaml\n(.*?)```", GUIDE, re.DOTALL)
AFTER = ("churn.yaml", "abalone.yaml", "digits.yaml")
VARYING = ("TrainingJobName", "Tags", "HyperParameters")


def _training(path: Path) -> dict[str, Any]:
    """Return what a pipeline's training job is asked for, but for names and where its data lies."""
    [request] = [
        step.operation.request
        for step in all_steps(Pipeline.load(path).lower().graph)
        if isinstance(step, Call) and step.operation.name == "CreateTrainingJob"
    ]
    kept = {name: value for name, value in request.items() if name not in VARYING}
    for channel in cast("list[dict[str, Any]]", kept["InputDataConfig"]):
        channel["DataSource"]["S3DataSource"].pop("S3Uri")
    return {**kept, "epochs": cast("dict[str, Any]", request["HyperParameters"])["epochs"]}


@pytest.mark.parametrize(("before", "after"), [*zip(IMPORTS, AFTER, strict=True)])
def test_each_before_is_imported_as_shown_and_its_after_trains_the_same(
    orchestrate: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: tuple[str, str],
    after: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text, "utf-8")
    file, shown = before
    said = orchestrate("import", file, "-o", "imported.yaml")
    assert said.status == 0
    parts = [re.escape(part) for part in shown.strip().split("\n…")]
    assert re.match(".*".join(part.strip() for part in parts), said.out + said.err, re.DOTALL)
    assert _training(Path(after)) == _training(Path("imported.yaml"))


def test_the_registration_and_the_endpoint_are_those_of_before(tmp_path: Path) -> None:
    requests = {}
    for name in AFTER[1:]:
        (tmp_path / name).write_text(FILES[name], "utf-8")
        for step in all_steps(Pipeline.load(tmp_path / name).lower().graph):
            if isinstance(step, Call):
                requests[step.operation.name] = step.operation.request
    assert requests["CreateModelPackage"]["ModelPackageGroupName"] == "abalone"
    variants = cast("list[dict[str, Any]]", requests["CreateEndpointConfig"]["ProductionVariants"])
    assert variants[0]["InstanceType"] == "ml.m5.large"
