"""The definition that the tests of imports read is the one that V2 writes.

Needs an environment with V2 (see README.md beside this file); skipped elsewhere.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestration.importing import from_definition
from tests.sdk import pipelines
from tests.sdk.capture import generation

# What the SDK warns of is its own affair.
pytestmark = pytest.mark.filterwarnings("ignore")

if generation() != 2:
    pytest.skip("needs the SageMaker Python SDK, V2 (make test-sdk)", allow_module_level=True)

RECORDED = Path(__file__).parents[1] / "data" / "sagemaker_pipelines" / "abalone.json"


def test_the_recorded_definition_is_the_sdk_s() -> None:
    written = pipelines.definition()
    assert written == json.loads(RECORDED.read_text(encoding="utf-8"))
    # Of its ten steps the model is one with the batch transform of it.
    assert len(from_definition(written).description["stages"]) == 9
