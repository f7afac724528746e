"""`orchestrate init` writes a folder whose pipeline runs as it is."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from orchestration import Pipeline
from orchestration.cli import run_file
from orchestration.cli.commands.starting import TEMPLATES
from tests.cli.conftest import Command


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_is_a_whole_folder(
    template: str, orchestrate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = orchestrate("init", "my-own", "--template", template)
    assert (said.status, said.err) == (0, "my-own/my-own.lock.json written\n")
    assert "cd my-own && pip install -r requirements.txt && orchestrate run" in said.out
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


@pytest.mark.toolkit
@pytest.mark.slow
@pytest.mark.parametrize("on", ["direct", "step-functions"])
def test_a_script_that_fails_shows_its_traceback(
    on: str, orchestrate: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert orchestrate("init", tmp_path / "broken").status == 0
    script = tmp_path / "broken" / "src" / "train.py"
    script.write_text(script.read_text().replace("model.fit(", "model.fitt("))
    monkeypatch.chdir(tmp_path / "broken")
    said = orchestrate("run", "--on", on, "--time-scale", "0.002")
    assert said.status == 1
    lines = [line for line in said.err.splitlines() if line.startswith("train: ")]
    assert "train: Traceback (most recent call last):" in lines, said.err
    # The toolkit passes on what a script writes piece by piece, so lines may come in parts.
    assert "fitt" in "".join(lines)
    assert "AttributeError" in "".join(lines)
    assert f"error: broken failed on {on}: JobFailed: " in said.err


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
        ("fine", ("--template", "xyz"), "there is fsdp-finetune, scikit-learn, tuning"),
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
