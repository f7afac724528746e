"""``orchestrate render`` from a lock file: what rendering makes, and only while it would."""

from __future__ import annotations

import contextlib
import copy
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from orchestration.backends import locks
from orchestration.cli.app import app
from orchestration.cli.commands import rendering
from orchestration.cli.commands.reading import locked
from orchestration.cli.commands.rendering import Backend
from orchestration.errors import UnsupportedError
from orchestration.pipeline import Pipeline, files
from tests import guides
from tests.cli.conftest import ROOT, Command
from tests.cli.test_process import start

EXAMPLES = sorted(
    str(path.relative_to(ROOT))
    for folder in ("dags", "examples")
    for path in (ROOT / folder).rglob("*.yaml")
)
BACKENDS: tuple[tuple[str, locks.Section], ...] = (
    ("step-functions", "step_functions"),
    ("airflow", "airflow"),
)


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the examples, without the lock files that are there."""
    root = tmp_path_factory.mktemp("examples")
    for folder in ("dags", "examples"):
        shutil.copytree(ROOT / folder, root / folder)
    for lock in root.rglob("*.lock.json"):
        lock.unlink()
    return root


def rendered(path: Path) -> Iterator[str | None]:
    """Yield what a whole rendering says for each backend; None where it says more than that."""
    workflow = Pipeline.load(path).lower()
    for backend in (Backend.STEP_FUNCTIONS, Backend.AIRFLOW):
        try:
            text = rendering.rendered(backend, workflow)
        except UnsupportedError:
            yield None
        else:
            yield None if rendering.warnings_of([backend], workflow) else text


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_lock_file_holds_what_rendering_makes(examples: Path, name: str) -> None:
    path = examples / name
    made = list(rendered(path))
    assert any(made)
    locks.lock_path(path).write_text(rendering.lock_text(path, files.lock(path))[0])
    assert [locks.text(path, section) for _, section in BACKENDS] == made


GPT2 = {
    "model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12, "n_positions": 1024,
    "vocab_size": 50257,
}  # fmt: skip
FILES = {
    "whole.yaml": {
        "name": "whole",
        "workspace": "s3://amzn-s3-demo-bucket/whole",
        "role": "arn:aws:iam::111122223333:role/train",
        "stages": {
            "prepare": {"kind": "pipeline", "file": "nested/inner.yaml"},
            "train": {
                "kind": "training_job",
                "image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/training:1",
                "source": {"directory": "code", "entry_point": "train.py", "runtime": True},
                "strategy": {
                    "kind": "auto",
                    "model": {"config": "models/tiny/config.json"},
                    "sequence": 1024,
                    "batch": {"samples": 256},
                    "data": {"samples": 100_000},
                    "instances": {"types": ["ml.p4d.24xlarge"], "counts": [1]},
                },
            },
            "deploy": {
                "kind": "deployment",
                "model_data": {"ref": "train.model_artifacts"},
                "model_archive": True,
                "image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/inference:1",
                "instance_type": "ml.m5.xlarge",
                "update": {"trial": {"cases": "cases.yaml"}},
            },
        },
    },
    "nested/inner.yaml": {
        "name": "inner",
        "workspace": "s3://amzn-s3-demo-bucket/inner",
        "stages": {
            "clean": {
                "kind": "processing_job",
                "image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/processing:1",
                "source": {"directory": "clean", "entry_point": "clean.py"},
                "cluster": {"instance_type": "ml.m5.xlarge"},
            }
        },
    },
    "cases.yaml": [{"request": {"text": "hi"}, "expected": {"label": "a"}}],
    "models/tiny/config.json": GPT2,
    "code/train.py": "print('trained')",
    "code/parts/layers.py": "LAYERS = 2",
    "nested/clean/clean.py": "print('cleaned')",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a locked pipeline that reads every kind of file there is."""
    folder = tmp_path_factory.mktemp("whole")
    for name, content in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        dump = json.dumps if file.suffix == ".json" else yaml.safe_dump
        file.write_text(content if isinstance(content, str) else dump(content))
    result = CliRunner().invoke(app, ["plan", str(folder / "whole.yaml"), "--update"])
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def whole(made: Path, tmp_path: Path) -> Path:
    """That pipeline, to be changed."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "whole.yaml"


_opened: set[Path] | None = None


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _opened is not None and event in ("open", "os.listdir", "os.scandir"):
        with contextlib.suppress(TypeError):
            _opened.add(Path(os.fsdecode(arguments[0])))


@contextlib.contextmanager
def opened() -> Iterator[set[Path]]:
    """Collect the files and folders that are opened meanwhile."""
    global _opened
    if not getattr(opened, "installed", False):
        sys.addaudithook(_audit)  # For good: there is no way to remove one.
        opened.installed = True  # type: ignore[attr-defined]  # functions take any
    _opened = set()
    try:
        yield _opened
    finally:
        _opened = None


def test_whatever_rendering_reads_is_noticed_when_it_changes(
    whole: Path, orchestrate: Command
) -> None:
    with opened() as read:
        said = orchestrate("render", "step-functions", whole)
    assert (said.status, said.err) == (0, "")
    own = {path.resolve() for path in read} & {*whole.parent.resolve().rglob("*")}
    lock_file = locks.lock_path(whole)
    read_files = {path for path in own if path.is_file()}
    assert read_files == {lock_file, *(whole.parent / name for name in FILES)}
    for file in sorted(read_files):
        before = file.read_bytes()
        changed = before.replace(b"ml.p4d", b"ml.p5") if file == lock_file else before + b"\n"
        file.write_bytes(changed)
        assert [locks.text(whole, section) for _, section in BACKENDS] == [None, None], file
        file.unlink()
        assert [locks.text(whole, section) for _, section in BACKENDS] == [None, None], file
        file.write_bytes(before)
    for folder in sorted(path for path in own if path.is_dir()):
        added = folder / "added.py"
        added.touch()
        assert [locks.text(whole, section) for _, section in BACKENDS] == [None, None], folder
        added.unlink()
    assert locks.text(whole, "step_functions") == said.out


@pytest.mark.parametrize("written", ["shared", "code/../shared", "shared-v2/deep/.."])
def test_dependencies_have_the_same_names_in_the_lock_file(
    tmp_path: Path, orchestrate: Command, written: str
) -> None:
    (tmp_path / "shared-v2/deep").mkdir(parents=True)
    for name in ("code/clean.py", "shared-v2/data.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1")
    (tmp_path / "shared").symlink_to("shared-v2")
    stage: Any = copy.deepcopy(FILES["nested/inner.yaml"])
    stage["stages"]["clean"]["source"] |= {"directory": "code", "dependencies": [written]}
    path = tmp_path / "inner.yaml"
    path.write_text(yaml.safe_dump(stage))
    assert orchestrate("lock", path).status == 0
    assert list(rendered(path)) == [locks.text(path, section) for _, section in BACKENDS]
    (tmp_path / "shared-v2/data.py").write_text("x = 2")
    assert locks.text(path, "step_functions") is None


def test_the_folders_of_code_may_be_missing(whole: Path, orchestrate: Command) -> None:
    made = locks.text(whole, "step_functions")
    shutil.rmtree(whole.parent / "code")
    assert locks.text(whole, "step_functions") == made
    assert orchestrate("render", "step-functions", whole).out == made


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["step_functions"].update(version="0.0.1"),
        lambda c: c["step_functions"]["definition"].update(Comment="other"),
        lambda c: c["step_functions"].pop("digest"),
        lambda c: c["step_functions"]["folders"].clear(),
        lambda c: c["step_functions"]["files"].clear(),
        lambda c: c["sources"].clear(),
        lambda c: c["plans"].clear(),
        lambda c: c.pop("step_functions"),
        lambda c: c.update(step_functions=[]),
    ],
)
def test_an_edited_lock_file_is_not_believed(whole: Path, change: Any) -> None:
    lock_file = locks.lock_path(whole)
    content = json.loads(lock_file.read_text())
    assert locks.text(whole, "step_functions") is not None
    change(content)
    lock_file.write_text(json.dumps(content))
    assert locks.text(whole, "step_functions") is None


def test_what_is_said_besides_is_said_from_no_lock_file(
    orchestrate: Command, training: Path
) -> None:
    orchestrate("lock", training)
    assert locks.text(training, "step_functions") is not None
    text = training.read_text().replace("image: image", "image: image\n    extra: {SageMaker: 1}")
    training.write_text(text)
    assert locks.text(training, "step_functions") is None


def test_stages_of_one_s_own_are_rendered_in_full(tmp_path: Path, orchestrate: Command) -> None:
    with guides.own_stages(tmp_path):
        path = tmp_path / "features.yaml"
        assert orchestrate("--stages", "my_stages", "lock", path).status == 0
        section = json.loads(locks.lock_path(path).read_text())["step_functions"]
        assert list(section["modules"]) == ["my_stages"]
        # Without the option the kind is not known.
        assert locks.text(path, "step_functions") is None
        assert orchestrate("render", "step-functions", path).status == 1


def test_nothing_heavy_is_loaded(whole: Path) -> None:
    code = (
        "import sys; from orchestration.cli import main; main(); "
        "print(*sys.modules, file=sys.stderr)"
    )
    for backend, section in BACKENDS:
        said = subprocess.run(
            [sys.executable, "-c", code, "render", backend, str(whole)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout == locks.text(whole, section)
        loaded = set(said.stderr.split())
        heavy = {"typer", "pydantic", "yaml", "botocore", "orchestration.graph", "rich"}
        assert loaded & heavy == set()


def test_a_fresh_file_is_found_fresh_and_others_are_left_to_the_whole_command(
    staging: Path, tmp_path: Path, orchestrate: Command
) -> None:
    orchestrate("lock", staging)
    file = tmp_path / "definition.json"
    command = ("render", "step-functions", staging, "-o", file)
    assert not locked.render([*map(str, command)])  # It is not there yet.
    assert start(*command).stderr == f"{file} written\n"
    for options in ([], ["--check"]):
        assert locked.render([*map(str, command), *options])
        assert start(*command, *options).stderr == f"{file} is fresh\n"
    file.write_text(file.read_text() + " ")
    said = start(*command, "--check")
    assert said.returncode == 1
    assert "is stale; run `orchestrate render" in said.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("render", "companion", "FILE"),
        ("render", "airflow", "FILE", "--check"),
        ("render", "step-functions", "FILE", "--fragment", "a"),
        ("render", "step-functions", "FILE", "--help"),
        ("render", "step-functions"),
        ("graph", "FILE"),
        ("render", "step-functions", "module:attribute"),
        (),
    ],
)
def test_other_commands_are_left_alone(
    staging: Path,
    orchestrate: Command,
    arguments: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    orchestrate("lock", staging)
    assert not locked.render([str(staging) if a == "FILE" else a for a in arguments])
    assert capsys.readouterr().out == ""


def test_a_reader_that_leaves_is_no_error(whole: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    said = subprocess.run(
        [sys.executable, "-m", "orchestration.cli", "render", "step-functions", str(whole)],
        cwd=ROOT,
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writing)
    assert (said.returncode, said.stderr) == (1, "")
