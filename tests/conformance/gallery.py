"""The examples as their READMEs say to run them: the scripts first, then `orchestrate run`."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from orchestration import Pipeline
from orchestration.cli import values
from orchestration.direct.asking import OnQuestion
from orchestration.graph import ParameterValue
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, RunReport, run

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
DRIVERS = cast(
    "tuple[On, ...]",
    tuple(os.getenv("ORCHESTRATION_TEST_DRIVERS", "step-functions airflow direct").split()),
)
"""All of them; on another version of Airflow, Airflow alone."""


@dataclass(frozen=True)
class Example:
    """A pipeline with what it is run with."""

    pipeline: Pipeline
    parameters: Mapping[str, ParameterValue]
    uploads: Mapping[str, Path]
    approved: Sequence[str] = field(default=())

    def run(
        self, aws: EmbeddedAws, on: On, airflow: LocalAirflow | None, **changed: ParameterValue
    ) -> RunReport:
        """Run it in a workspace of the driver's own, as its first run there."""
        bucket = f"{self.parameters['bucket']}-{self.pipeline.name}-{on}"
        parameters = {**self.parameters, "bucket": bucket, **changed}
        return run(
            self.pipeline,
            on=on,
            aws=aws,
            airflow=airflow,
            parameters=parameters,
            uploads=self.uploads,
            on_question=self._person(),
        )

    def _person(self) -> OnQuestion | None:
        if not self.approved:
            return None
        return lambda stage, _: ("approved", "tried it") if stage in self.approved else None


def from_readme(name: str, folder: Path) -> Example:
    """Make an example's data in a folder, and read its command."""
    commands = _commands(EXAMPLES / name / "README.md")
    for command in commands:
        if command[0] == "python":
            script = str(ROOT / command[1])
            subprocess.run([sys.executable, script, *command[2:]], cwd=folder, check=True)
    [told] = [command[2:] for command in commands if command[:2] == ["orchestrate", "run"]]
    pipeline = Pipeline.load(ROOT / told[0])
    options: dict[str, list[str]] = {"-p": [], "--upload": [], "--approve": []}
    for option, value in zip(told[1::2], told[2::2], strict=True):
        options[option].append(value)
    pairs = [pair.rsplit("=", 1) for pair in options["--upload"]]
    return Example(
        pipeline,
        values.parameters(pipeline.parameter_specs(), options["-p"], filled=("role",)),
        {uri: _place(path, folder) for path, uri in pairs},
        options["--approve"],
    )


def from_script(name: str) -> tuple[Example, Any]:
    """Return an example whose README runs a script, and the script."""
    script = _module(EXAMPLES / name / "run_here.py")
    [source] = (EXAMPLES / name).glob("*.yaml")
    return Example(Pipeline.load(source), script.PARAMETERS, script.UPLOADS), script


def _commands(readme: Path) -> list[list[str]]:
    text = "".join(re.findall(r"```console\n(.*?)```", readme.read_text("utf-8"), re.DOTALL))
    lines = text.replace("\\\n", "").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("$ ")]


def _place(path: str, folder: Path) -> Path:
    made = folder / path
    return made if made.exists() else ROOT / path


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
