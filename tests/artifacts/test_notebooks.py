"""The notebooks run from top to bottom, and are kept without what they printed."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.patience import PATIENCE_S

# Of the `dev` extra; an environment that is older than they are has none of them.
nbclient: Any = pytest.importorskip("nbclient")
nbformat: Any = pytest.importorskip("nbformat")

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))
# The client's threads and the kernel's sockets are the libraries' own affair.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


def read(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def executed(name: str, folder: Path) -> str:
    """Run a notebook among copies of the examples; return what its cells printed and gave."""
    for each in ("notebooks", "retraining"):
        shutil.copytree(ROOT / "examples" / each, folder / each)
    notebook = read(folder / "notebooks" / f"{name}.ipynb")
    # With the folder of `orchestrate`, as in an activated environment.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    place = {"metadata": {"path": str(folder / "notebooks")}}
    client = nbclient.NotebookClient(notebook, timeout=PATIENCE_S, resources=place)
    client.execute(env={**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)})
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return "\n".join(
        output["text"] if "text" in output else output["data"]["text/plain"] for output in outputs
    )


def test_the_planning_notebook_pins_a_plan(tmp_path: Path) -> None:
    told = executed("planning", tmp_path)
    assert "take        1 x ml.p5.48xlarge: ZeRO-2 over 8, started by torch_distributed" in told
    assert "'zero_stage': 2" in told


@pytest.mark.toolkit
def test_the_direct_notebook_trains_and_deploys(tmp_path: Path) -> None:
    told = executed("direct", tmp_path)
    assert "('deploy', 'deployment')" in told
    assert "SourceNotUsable: stage staging expected 1 to 500 objects" in told


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path: Path) -> None:
    notebook = read(path)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


def test_every_notebook_is_run_and_linked_to() -> None:
    # tests/sdk runs the bridge's, beside the SDK.
    assert {path.stem for path in NOTEBOOKS} == {"direct", "planning", "sagemaker_sdk"}
    texts = {"examples/README.md": "notebooks/", "docs/notebooks.md": "../examples/notebooks/"}
    for page, place in texts.items():
        text = (ROOT / page).read_text("utf-8")
        assert [path.name for path in NOTEBOOKS if f"]({place}{path.name})" not in text] == []
