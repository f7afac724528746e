"""The package as a whole: its names, its examples, copies of it, old Pythons, Lightning."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import orchestration
from orchestration import runtime
from orchestration.runtime import Cluster, lightning_environment
from orchestration.runtime.lightning import _Environment
from orchestration.stages.vendoring import FOLDER, vendor
from tests.patience import PATIENCE_S

# A package inside is a program of its own, and is not vendored.
MODULES = sorted(
    module.name for module in pkgutil.iter_modules(runtime.__path__) if not module.ispkg
)

CHECK = """
import doctest, importlib, pkgutil, sys
import orchestration_runtime as copy
foreign = [name for name in sys.modules if name.partition(".")[0] in ("orchestration", "pydantic")]
assert not foreign, foreign
assert copy.cluster().launcher == "none"
modules = [copy] + [importlib.import_module(f"{copy.__name__}.{module.name}")
                    for module in pkgutil.iter_modules(copy.__path__)]
print(sum(doctest.testmod(module).failed for module in modules), len(modules))
"""


def test_all_is_sorted_and_documented() -> None:
    assert runtime.__all__ == sorted(runtime.__all__)
    public = {name: getattr(runtime, name) for name in runtime.__all__}
    assert [name for name, thing in public.items() if not inspect.getdoc(thing)] == []
    modules = {name for name, thing in vars(runtime).items() if inspect.ismodule(thing)}
    others = {name for name in vars(runtime) if not name.startswith("_")} - modules
    assert others == set(public)


@pytest.mark.parametrize("name", ["", *MODULES])
def test_examples_run(name: str) -> None:
    module = importlib.import_module(f"orchestration.runtime.{name}".rstrip("."))
    assert doctest.testmod(module).failed == 0


def old_python(version: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    found = shutil.which(f"python{version}")
    if found is None:
        pytest.skip(f"python{version} is not installed")
    # pyenv has a command for each version it ever had, which runs the one that is chosen.
    chosen = {**os.environ, "PYENV_VERSION": version}
    probe = subprocess.run(
        [found, "-V"], env=chosen, capture_output=True, check=False, timeout=PATIENCE_S
    )
    if probe.returncode != 0:
        pytest.skip(f"python{version} does not start")
    return subprocess.run(
        [found, "-W", "error", *arguments],
        env=chosen,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.12", "3.13"])
def test_a_copy_works_alone_on_other_pythons(tmp_path: Path, version: str) -> None:
    vendor(tmp_path)
    script = tmp_path / "check.py"
    script.write_text(CHECK)
    done = old_python(version, str(script))
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", str(len(MODULES) + 1)]


def test_a_copy_works_alone(tmp_path: Path) -> None:
    vendor(tmp_path)
    (tmp_path / "check.py").write_text(CHECK)
    command = [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})"]
    command[-1] += f"; exec(open({str(tmp_path / 'check.py')!r}).read())"
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert done.stdout.split() == ["0", str(len(MODULES) + 1)], done.stderr


def test_vendoring_copies_every_byte_below_a_header(tmp_path: Path) -> None:
    original = Path(runtime.__path__[0])
    written = vendor(tmp_path)
    assert [path.name for path in written] == sorted(path.name for path in original.glob("*.py"))
    assert {path.parent for path in written} == {tmp_path / FOLDER}
    for path in written:
        header, _, content = path.read_bytes().partition(b"\n")
        assert orchestration.__version__.encode() in header
        assert content == (original / path.name).read_bytes()


def test_vendoring_again_changes_nothing_and_mends_what_is_old(tmp_path: Path) -> None:
    written = vendor(tmp_path)
    before = [path.stat().st_mtime_ns for path in written]
    assert vendor(tmp_path) == written
    assert [path.stat().st_mtime_ns for path in written] == before
    fresh = written[0].read_bytes()
    header = fresh.partition(b"\n")[0]
    written[0].write_bytes(header + b"\nold = 1\n")
    (tmp_path / FOLDER / "gone.py").write_bytes(header + b"\nold = 1\n")
    vendor(tmp_path)
    assert written[0].read_bytes() == fresh
    assert not (tmp_path / FOLDER / "gone.py").exists()


def test_vendoring_touches_no_file_of_the_users(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "__init__.py").write_text("mine = 1\n")
    with pytest.raises(FileExistsError, match=r"__init__\.py"):
        vendor(tmp_path)
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == ["__init__.py"]


# Of lightning 2.6.6 (November 2026).
ABSTRACT = {
    "creates_processes_externally",
    "detect",
    "global_rank",
    "local_rank",
    "main_address",
    "main_port",
    "node_rank",
    "set_global_rank",
    "set_world_size",
    "world_size",
}
TORCHRUN = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
TWO = {"SM_HOSTS": '["algo-1", "algo-2"]', "SM_CURRENT_HOST": "algo-2"}

LIGHTNING = """
import json
from lightning.fabric import Fabric
from lightning.fabric.plugins.environments import ClusterEnvironment
from orchestration.runtime import lightning_environment

plugin = lightning_environment()
assert isinstance(plugin, ClusterEnvironment)
fabric = Fabric(accelerator="cpu", devices=2, num_nodes=1, strategy="ddp", plugins=[plugin])
fabric.launch()
print(json.dumps([fabric.global_rank, fabric.world_size, fabric.local_rank, fabric.node_rank]))
fabric.barrier()
"""


def environment(environ: dict[str, str]) -> Any:
    return _Environment(Cluster.from_environment(environ))


def test_lightnings_interface_is_filled() -> None:
    assert {name for name in ABSTRACT if not hasattr(_Environment, name)} == set()


def test_lightning_is_told_what_torchrun_says() -> None:
    here = environment(TWO | TORCHRUN)
    assert here.creates_processes_externally
    here.set_world_size(99)
    here.set_global_rank(99)
    assert (here.global_rank(), here.world_size()) == (3, 4)
    assert (here.local_rank(), here.node_rank()) == (1, 1)
    assert (here.main_address, here.main_port) == ("algo-1", 7777)
    here.validate_settings(num_devices=2, num_nodes=2)
    with pytest.raises(ValueError, match="2 processes on each of 2 hosts"):
        here.validate_settings(num_devices=4, num_nodes=1)


def test_lightning_counts_where_it_starts_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    here = environment(TWO)
    assert not here.creates_processes_externally
    here.set_world_size(8)
    here.set_global_rank(5)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert (here.global_rank(), here.world_size(), here.local_rank()) == (5, 8, 1)
    here.validate_settings(num_devices=4, num_nodes=2)


def test_without_lightning_it_says_so() -> None:
    if importlib.util.find_spec("lightning") is not None:
        pytest.skip("Lightning is installed")
    with pytest.raises(ImportError, match="pip install lightning"):
        lightning_environment()


def test_lightning_trains_under_torchrun(tmp_path: Path) -> None:
    if importlib.util.find_spec("lightning") is None:
        pytest.skip("Lightning is not installed")
    script = tmp_path / "train.py"
    script.write_text(LIGHTNING)
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [Path(sys.executable).parent / "torchrun", "--standalone", "--nproc_per_node", "2", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    lines = {line for line in done.stdout.splitlines() if line.startswith("[")}
    assert lines == {"[0, 2, 0, 0]", "[1, 2, 1, 0]"}
