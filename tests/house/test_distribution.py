"""Wheel and source distribution: what an index takes, and what works once it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from orchestration.cli.commands.beginning import starting
from tests.patience import PATIENCE_S
from tests.shown.pages import ShownCommand, steps

_ROOT = Path(__file__).parents[2]


def _built(source: Path, place: Path, *targets: str) -> list[Path]:
    """Build as `make build` does, in a process of its own: another source is another project."""
    flags = [part for target in targets for part in ("-t", target)]
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(place), *flags],
        cwd=source,
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    return sorted([*place.glob("*.tar.gz"), *place.glob("*.whl")], key=lambda path: path.suffix)


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source distribution."""
    source, wheel = _built(_ROOT, tmp_path_factory.mktemp("dist"), "sdist", "wheel")
    return wheel, source


def test_wheel_holds_types_licence_and_nothing_else(distributions: tuple[Path, Path]) -> None:
    names = zipfile.ZipFile(distributions[0]).namelist()
    assert "orchestration/py.typed" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    tables = {str(path.relative_to(_ROOT)) for path in (_ROOT / "orchestration").rglob("*.csv")}
    assert "orchestration/planning/cost/coefficients.csv" in tables
    assert tables <= set(names)
    assert {name.split("/")[0] for name in names} <= {
        "orchestration",
        "sagemaker_orchestration-0.1.0.dist-info",
    }
    assert not [name for name in names if "__pycache__" in name]


def test_the_lowest_versions_are_those_of_the_oldest_platform() -> None:
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    stated = [*project["dependencies"], *extras["airflow"], *extras["aws"], *extras["local"]]
    platform = (_ROOT / "tools/airflow_versions/mwaa-3.2.1.txt").read_text("utf-8")
    pins = dict(line.split("==") for line in platform.splitlines() if not line.startswith("#"))
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    wrong = {}
    for requirement in map(Requirement, stated):
        pin = pinned.get(canonicalize_name(requirement.name))
        if pin and f">={pin}" not in str(requirement.specifier).split(","):
            wrong[requirement.name] = pin
    assert wrong == {}


def test_an_index_takes_both(distributions: tuple[Path, Path]) -> None:
    paths = map(str, distributions)
    command = [sys.executable, "-m", "twine", "check", "--strict", *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout.count("PASSED")) == (0, 2), done.stdout + done.stderr


def test_the_source_distribution_makes_the_same_wheel(
    distributions: tuple[Path, Path], tmp_path: Path
) -> None:
    wheel, source = distributions
    with tarfile.open(source) as archive:
        archive.extractall(tmp_path, filter="data")
    [unpacked] = tmp_path.iterdir()
    [again] = _built(unpacked, tmp_path / "again", "wheel")
    first, second = (
        {entry.filename: entry.CRC for entry in zipfile.ZipFile(each).infolist()}
        for each in (wheel, again)
    )
    assert second == first


def test_an_installed_wheel_begins_pipelines(
    distributions: tuple[Path, Path], tmp_path: Path
) -> None:
    place = tmp_path / "installed"
    flags = ["--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check"]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", *flags, "--target", place, distributions[0]],
        check=True,
        timeout=PATIENCE_S,
    )
    environment = {"PYTHONPATH": str(place), "PATH": os.environ["PATH"]}

    def said(*command: str | Path) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    where = said(sys.executable, "-c", "import orchestration; print(orchestration.__file__)")
    assert where.startswith(str(place))
    for arguments in (["init", "own"], ["validate", "own/own.yaml"]):
        said(place / "bin" / "orchestrate", *arguments)
    assert (tmp_path / "own" / "train" / "train.py").is_file()


@pytest.mark.thorough
def test_the_requirements_of_a_template_are_the_wheel_and_what_it_needs(
    distributions: tuple[Path, Path], tmp_path: Path
) -> None:
    """A template's first command; its index has the wheel, its packages are those of tests."""
    starting.init(tmp_path / "own", "scikit-learn")
    environment = tmp_path / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    library = next(environment.glob("lib/python3*/site-packages"))
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if "orchestration" not in entry.name and not (library / entry.name).exists():
            (library / entry.name).symlink_to(entry)
    python = environment / "bin" / "python"
    [line] = [
        step.line
        for step in steps(tmp_path / "own" / "README.md")
        if isinstance(step, ShownCommand) and step.line.startswith("pip ")
    ]
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    subprocess.run(
        [*pip, *line.split()[1:]],
        cwd=tmp_path / "own",
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(distributions[0].parent)},
        check=True,
        timeout=PATIENCE_S,
    )
    assert (library / "orchestration" / "py.typed").is_file()
    command = environment / "bin" / "orchestrate"
    subprocess.run(
        [command, "validate", "own.yaml"], cwd=tmp_path / "own", check=True, timeout=PATIENCE_S
    )
