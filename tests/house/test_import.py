"""`import orchestration` is cheap and touches nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.patience import PATIENCE_S

# Runs in a fresh interpreter. Third parties are imported before the watch begins: what they do
# while they load is theirs, but which of them get loaded is ours, and is asked at the end.
_WATCH = """
import json, os, sys
import annotated_types, pydantic, pydantic.fields, pydantic_core, typing_extensions

seen = []
watched = ("open", "socket.", "subprocess.", "os.system", "os.exec", "os.listdir", "os.scandir")

def caller():
    # Who asked: the nearest frame that is not the standard library's. The import system reads files
    # to load modules, and pydantic reads the source of a model for the help of its fields.
    frame = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__", "")
        if module.startswith(("importlib", "_frozen_importlib", "zipimport")):
            return None
        if module.split(".")[0] not in sys.stdlib_module_names:
            return module if module.split(".")[0] == "orchestration" else None
        frame = frame.f_back
    return None

def hook(event, args):
    if event.startswith(watched):
        module = "somebody" if event.startswith("socket.") else caller()
        if module:
            seen.append([module, event, repr(args[:1])])

class Watched(type(os.environ)):
    def __getitem__(self, name):
        module = caller()
        if module:
            seen.append([module, "os.environ", name])
        return super().__getitem__(name)

os.environ.__class__ = Watched
before = set(sys.modules)
sys.addaudithook(hook)
{body}
watched = ()
print(json.dumps({{"seen": seen, "loaded": sorted(set(sys.modules) - before)}}))
"""

_HEAVY = {
    "aiobotocore",
    "airflow",
    "boto3",
    "botocore",
    "cfnlint",
    "jsonata",
    "moto",
    "numpy",
    "regex",
    "requests",
    "sagemaker",
    "sagemaker_training",
    "sqlalchemy",
    "torch",
    "typer",
    "urllib3",
}


def _watch(body: str) -> tuple[list[list[str]], set[str]]:
    done = subprocess.run(
        [sys.executable, "-c", _WATCH.format(body=body)],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    report = json.loads(done.stdout)
    return report["seen"], {name.partition(".")[0] for name in report["loaded"]}


def test_import_loads_nothing_heavy() -> None:
    _, loaded = _watch("import orchestration")
    assert "orchestration" in loaded
    assert not loaded & _HEAVY


def test_import_touches_no_network_file_or_environment() -> None:
    seen, _ = _watch("import orchestration")
    assert seen == []


@pytest.mark.parametrize("version", ["3.8", "3.10", "3.14"])
def test_a_python_that_nobody_tried_is_refused(version: str) -> None:
    found = shutil.which(f"python{version}")
    chosen = {**os.environ, "PYENV_VERSION": version}
    if found is None or subprocess.run([found, "-V"], env=chosen, check=False).returncode != 0:
        pytest.skip(f"python{version} is not installed")
    done = subprocess.run(
        [found, "-c", "import orchestration"],
        env=chosen,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    said = (
        f"ImportError: sagemaker-orchestration needs Python 3.11, 3.12 or 3.13; this is {version}"
    )
    assert done.stderr.strip().endswith(said)


def test_every_public_name_loads_nothing_heavy() -> None:
    _, loaded = _watch("from orchestration import *")
    assert not loaded & _HEAVY


def test_the_watch_sees_what_it_looks_for() -> None:
    seen, loaded = _watch(
        "import types, colorsys; rogue = types.ModuleType('orchestration.rogue')\n"
        "exec(\"import os; os.environ.get('HOME'); open(os.devnull).close()\", rogue.__dict__)"
    )
    assert [event for _, event, _ in seen] == ["os.environ", "open"]
    assert "colorsys" in loaded
