"""`orchestrate init` writes a folder whose pipeline runs as it is."""

from __future__ import annotations

import ast
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, metadata, packages_distributions
from pathlib import Path
from typing import cast

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from orchestration import Pipeline
from orchestration.cli import run_file
from orchestration.cli.commands import running
from orchestration.cli.commands.beginning.installing import installed
from orchestration.cli.commands.beginning.starting import TEMPLATES, Template
from orchestration.local.run.toolkits_needed import toolkits_needed
from orchestration.local.sagemaker.hosts.toolkits import PYTORCH
from orchestration.pipeline import files
from tests.cli.conftest import Command

ROOT = Path(__file__).parents[2]
PROMISED_S = 120.0
"""What `orchestrate run` takes in a folder that `orchestrate init` made, on a machine to itself."""


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_a_whole_folder(
    template: str, orchestrate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = orchestrate("init", "my-own", "--template", template)
    assert (said.status, said.err) == (0, "my-own/my-own.lock.json written\n")
    assert "cd my-own && orchestrate run\n" in said.out
    folder = tmp_path / "my-own"
    pipeline = Pipeline.load(folder / "my-own.yaml")
    assert pipeline.name == "my-own"
    given = run_file.load(folder / "run.yaml")
    values = given.parameters_of(pipeline.parameter_specs())
    missing = {s.name for s in pipeline.parameter_specs() if s.default is None} - set(values)
    assert missing == {"role"}
    assert all(path.is_dir() and any(path.iterdir()) for path in given.uploads.values())
    assert orchestrate("validate", folder / "dag.py").status == 0
    texts = [p.read_text() for p in folder.rglob("*") if p.suffix in (".md", ".yaml", ".yml")]
    assert not [text for text in texts if re.search(r"@[A-Z]+@", text)]
    readme = (folder / "README.md").read_text()
    for path in re.findall(r"^\| `([^`]+)`", readme, re.MULTILINE):
        assert (folder / path).is_file()
    for script in TEMPLATES[template].scripts:
        assert "# Your code: " in (folder / script).read_text()
    kinds = {getattr(stage, "kind", "") for stage in pipeline.stages}
    assert {"training_job", "tuning_job"} & kinds
    assert {"checkpoint_evaluation", "deployment"} <= kinds


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_changed_evaluation_is_no_other_training(
    template: str, orchestrate: Command, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    assert orchestrate("init", folder, "--template", template).status == 0

    def changed(script: str) -> set[str]:
        (folder / script).write_text(f"{(folder / script).read_text()}\n# changed\n")
        pinned, now = (
            json.loads((folder / "mine.lock.json").read_text())["sources"],
            files.lock(folder / "mine.yaml")["sources"],
        )
        assert orchestrate("lock", folder / "mine.yaml").status == 0
        return {key for key in now if pinned[key] != now[key]}

    trains = f"{TEMPLATES[template].trains}.source"
    assert changed("evaluate/evaluate.py") == {"evaluate.source"}
    assert changed("train/train.py") == {trains}
    assert changed("shared/__init__.py") == {trains, "evaluate.source"}


@pytest.mark.toolkit
@pytest.mark.parametrize("template", TEMPLATES)
def test_the_requirements_of_a_template_bring_what_its_runs_import(
    template: str, orchestrate: Command, tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    assert orchestrate("init", folder, "--template", template).status == 0
    assert uncovered(folder, Pipeline.load(folder / "mine.yaml")) == set()


@pytest.mark.parametrize(
    ("platform", "name"),
    [("linux", "xgboost-cpu"), ("win32", "xgboost-cpu"), ("darwin", "xgboost")],
)
def test_xgboost_has_the_name_that_has_wheels_without_cuda(platform: str, name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for lines in (project["optional-dependencies"]["dev"], TEMPLATES["xgboost"].packages):
        needed = [
            each.name
            for each in map(Requirement, lines)
            if each.marker is None or each.marker.evaluate({"sys_platform": platform})
        ]
        assert [each for each in needed if each.startswith("xgboost")] == [name]


def test_json_names_what_was_written(orchestrate: Command, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    told = orchestrate("init", folder, "--template", "tuning", "--json").document
    assert {"mine.yaml", "run.yaml", *TEMPLATES["tuning"].scripts} <= {*told["files"]}
    assert all((folder / name).is_file() for name in told["files"])
    assert (told["warnings"], told["pipeline"]) == ([], "mine.yaml")
    # All of its requirements are here.
    assert told["next"] == f"cd {folder} && orchestrate run"


@pytest.mark.parametrize(
    ("requirements", "there"),
    [
        (["sagemaker-orchestration[demo,local]>=0.1.0", "numpy"], True),
        (["sagemaker-orchestration", "no-such-distribution"], False),
        (["no-such-distribution[aws]>=1"], False),
        # Its extra brings what is not installed here.
        (["hypothesis[django]"], False),
        (["-r more.txt"], False),
        (['numpy; sys_platform != "nowhere"', 'no-such; sys_platform == "nowhere"'], True),
        (['no-such-distribution; sys_platform != "nowhere"'], False),
    ],
)
def test_what_is_installed_need_not_be_installed_again(
    requirements: list[str], there: bool
) -> None:
    assert installed(requirements) == there


def test_json_holds_the_warnings_of_the_lock_file(
    orchestrate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    example = tmp_path / "example"
    shutil.copytree(ROOT / "examples" / "tuning", example)
    pipeline = example / "sweep.yaml"
    # Every DAG has a task of this name.
    pipeline.write_text(re.sub(r"\btune\b", "outputs", pipeline.read_text()))
    unlike = replace(TEMPLATES["tuning"], example=str(example))
    monkeypatch.setitem(cast("dict[str, Template]", TEMPLATES), "unlike", unlike)
    told = orchestrate("init", tmp_path / "mine", "--template", "unlike", "--json")
    [warning] = told.document["warnings"]
    assert "the lock file holds no DAG" in warning
    assert told.err.count(warning) == 1


def uncovered(folder: Path, pipeline: Pipeline) -> set[str]:
    """Return the modules that a run of a template imports and its requirements do not bring."""
    lines = (folder / "requirements.txt").read_text().splitlines()
    brought = {
        name
        for requirement in map(Requirement, lines)
        if requirement.marker is None or requirement.marker.evaluate()
        for name in distributions(requirement)
    }
    parsed = [ast.parse(path.read_text()) for path in folder.rglob("*.py")]
    imported = {
        name
        for tree in parsed
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else [str(node.module)]
        )
    }
    own = {path.stem for path in folder.rglob("*.py")} | {"orchestration", "orchestration_runtime"}
    own.add("shared")
    toolkits = {each.package for _, each in toolkits_needed(pipeline, pipeline.lower(), {})}
    assert toolkits
    modules = {
        *map(top, imported),
        *toolkits,
        *map(top, running.MODULES),
        *map(top, running.AIRFLOW),
    }
    providers = packages_distributions()
    return {
        module
        for module in modules - own - sys.stdlib_module_names
        if not brought & {canonicalize_name(name) for name in providers.get(module, ())}
    }


def top(module: str) -> str:
    return module.partition(".")[0]


@functools.cache
def distributions(requirement: Requirement) -> frozenset[str]:
    """Return the distributions that installing one brings, of those that are installed here."""
    found: set[str] = set()
    wanted = [(canonicalize_name(requirement.name), frozenset(requirement.extras))]
    seen = set(wanted)
    for name, extras in wanted:  # which grows
        found.add(name)
        for line in requires(name):
            needed = Requirement(line)
            environments = [{"extra": extra} for extra in (*extras, "")]
            following = (canonicalize_name(needed.name), frozenset(needed.extras))
            if following not in seen and (
                needed.marker is None or any(map(needed.marker.evaluate, environments))
            ):
                seen.add(following)
                wanted.append(following)
    return frozenset(found)


def requires(name: str) -> Sequence[str]:
    """Return what a distribution requires; of this one, as ``pyproject.toml`` says now."""
    if name != "sagemaker-orchestration":
        try:
            return metadata(name).get_all("Requires-Dist") or ()
        except PackageNotFoundError:
            return ()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].items()
    return [
        *project["dependencies"],
        *(of_extra(line, extra) for extra, lines in extras for line in lines),
    ]


def of_extra(line: str, extra: str) -> str:
    name, _, marker = line.partition(";")
    return f"{name}; {f'({marker}) and ' if marker else ''}extra == '{extra}'"


def others() -> float:
    """Return how many times as long as alone a program takes, by what waits for each processor."""
    return max(1.0, max(os.getloadavg()[:2]) / (os.cpu_count() or 1))


@pytest.mark.toolkit
@pytest.mark.slow
def test_the_first_template_trains_evaluates_and_deploys_as_it_is(tmp_path: Path) -> None:
    performed_as_it_is(next(iter(TEMPLATES)), tmp_path)


@pytest.mark.toolkit
@pytest.mark.thorough
@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_done_in_the_time_that_is_promised(
    template: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    busy = others()
    seconds = performed_as_it_is(template, tmp_path)
    record_property("seconds", round(seconds, 1))
    assert seconds < PROMISED_S * max(busy, others())


def performed_as_it_is(template: str, tmp_path: Path) -> float:
    """Begin a pipeline and run it; return how long that took."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path}

    def perform(folder: Path, *command: str) -> str:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    perform(tmp_path, "orchestrate", "init", "mine", "--template", template)
    before = time.monotonic()
    report = json.loads(perform(tmp_path / "mine", "orchestrate", "run", "--json"))
    seconds = time.monotonic() - before
    assert {stage["state"] for stage in report["stages"]} == {"succeeded"}
    assert report["outputs"]["deploy"]["answer"]
    return seconds


def test_a_missing_toolkit_is_told_before_anything_starts(
    orchestrate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert orchestrate("init", tmp_path / "bare").status == 0
    monkeypatch.chdir(tmp_path / "bare")
    monkeypatch.setenv(PYTORCH.python, "/nowhere/python")
    said = orchestrate("run")
    assert said.status == 1
    assert f"error: stage train: {PYTORCH.python} is '/nowhere/python'" in said.err
    assert "staging" not in said.err


@pytest.mark.toolkit
@pytest.mark.slow
@pytest.mark.parametrize("on", ["direct", "step-functions"])
def test_a_script_that_fails_shows_its_traceback(
    on: str, orchestrate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert orchestrate("init", tmp_path / "broken").status == 0
    script = tmp_path / "broken" / "train" / "train.py"
    more = "    print('logged before')\n    print('and more\\n' * 99)\n    model.fitt("
    script.write_text(script.read_text().replace("    model.fit(", more))
    monkeypatch.chdir(tmp_path / "broken")
    said = orchestrate("run", "--on", on, "--time-scale", "0.002")
    assert said.status == 1
    lines = [line for line in said.err.splitlines() if line.startswith("train: ")]
    assert "train: Traceback (most recent call last):" in lines, said.err
    assert "train:     model.fitt(features, left)" in lines, said.err
    wrong = "AttributeError: 'Pipeline' object has no attribute 'fitt'. Did you mean: 'fit'?"
    assert f"train: {wrong}" in lines, said.err
    assert f'ErrorMessage "{wrong}' in said.err
    assert f"error: broken failed on {on}: JobFailed: " in said.err
    assert "the whole logs: .orchestration/runs/broken/last-failed/logs" in said.err
    whole = orchestrate("logs", "train")
    assert whole.status == 0
    assert "Traceback (most recent call last):" in whole.out
    assert "logged before" in whole.out
    nameless = orchestrate("logs", "broken.yaml")
    assert (nameless.status, "STAGE" in nameless.err) == (2, True)


def test_the_makefile_checks_locks_and_makes_data(tmp_path: Path, orchestrate: Command) -> None:
    folder = tmp_path / "made"
    assert orchestrate("init", folder).status == 0
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    for target in ("help", "data", "check", "lock"):
        command = ["make", target]
        done = subprocess.run(
            command, cwd=folder, env={"PATH": path}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
    assert orchestrate("lock", folder / "made.yaml", "--check").status == 0


@pytest.mark.parametrize(
    ("directory", "options", "message"),
    [
        ("Nice_One", (), "small letters, digits and hyphens"),
        ("x" * 31, (), "at most 30"),
        ("full", (), "full is not empty"),
        ("fine", ("--template", "scikitlearn"), "did you mean 'scikit-learn'?"),
        ("fine", ("--template", "xyz"), "there is fsdp-finetune, scikit-learn, text-classifier"),
    ],
)
def test_what_can_not_begin_is_refused(
    directory: str,
    options: tuple[str, ...],
    message: str,
    orchestrate: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "a").touch()
    said = orchestrate("init", directory, *options)
    assert said.status == 2
    assert message in " ".join(said.err.split())
    assert not (tmp_path / "fine").exists()


def test_data_that_could_not_be_made_is_made_by_the_commands_that_come_next(
    orchestrate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = tmp_path / "lacking"
    lacking.mkdir()
    (lacking / "safetensors.py").write_text("raise ModuleNotFoundError('safetensors')\n")
    monkeypatch.setenv("PYTHONPATH", str(lacking))
    said = orchestrate("init", tmp_path / "notes", "--template", "fsdp-finetune", "--json")
    assert said.status == 0
    assert "safetensors" in said.document["warnings"][0]
    assert said.document["next"].endswith("python make.py tiny-llama && orchestrate run")
