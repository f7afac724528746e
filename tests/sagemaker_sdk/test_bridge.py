"""The bridge where there is no SDK: it imports none, and its differences are well formed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from orchestration import PipelineError
from orchestration.sagemaker_sdk import DIFFERENCES, from_estimator, from_model_trainer
from tests.patience import PATIENCE_S
from tests.sdk.comparing import LISTED

LOADED = """
import sys
import orchestration.sagemaker_sdk
heavy = {"sagemaker", "boto3", "botocore", "airflow", "moto", "torch"}
print(sorted(heavy & {name.partition(".")[0] for name in sys.modules}))
"""


def test_importing_the_bridge_imports_no_sdk() -> None:
    told = subprocess.run(
        [sys.executable, "-c", LOADED],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    assert told.stdout.strip() == "[]"


def test_every_difference_from_v2_is_looked_at_in_the_tests_against_it() -> None:
    assert [each.field for each in DIFFERENCES if each.sdk != "V3"] == list(LISTED)


def test_every_difference_is_listed_once_with_its_reason() -> None:
    assert len({(each.sdk, each.field) for each in DIFFERENCES}) == len(DIFFERENCES)
    assert all(len(each.reason) > 10 for each in DIFFERENCES)


def test_the_differences_are_documented() -> None:
    readme = Path(__file__).parents[1] / "sdk" / "README.md"
    text = readme.read_text(encoding="utf-8")
    rows = [f"| {each.sdk} | `{each.field}` | {each.reason} |" for each in DIFFERENCES]
    assert [row for row in rows if row not in text] == []


@pytest.mark.parametrize("convert", [from_estimator, from_model_trainer])
def test_what_is_no_object_of_the_sdk_is_refused(convert: object) -> None:
    assert callable(convert)
    with pytest.raises(PipelineError, match="is a str, not a"):
        convert("an estimator")
