"""The notebook of the bridge, run beside the SDK that it imports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestration import Pipeline
from tests.sdk.capture import generation

# What the SDK warns of is its own affair.
pytestmark = pytest.mark.filterwarnings("ignore")

if generation() != 2:
    pytest.skip("needs the SageMaker Python SDK, V2 (make test-sdk)", allow_module_level=True)

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebooks" / "sagemaker_sdk.ipynb"


def test_the_notebook_turns_an_estimator_into_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # and back: the notebook changes the folder
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    names: dict[str, Any] = {}
    for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), NOTEBOOK.name, "exec"), names)
    [train] = Pipeline.load(tmp_path / "mine.yaml").stages
    assert train == names["train"].model_copy(update={"source": train.source})  # type: ignore[attr-defined]  # a training job
