"""The code of V2's estimators: in one folder, or put together from several as the SDK packs it.

Needs an environment with V2 (see README.md beside this file); skipped elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration.sagemaker_sdk import from_estimator, pipeline_from_estimator
from tests.sdk.capture import S3, generation
from tests.sdk.natural import Sdk, refusals

# What the SDK warns of is its own affair.
pytestmark = pytest.mark.filterwarnings("ignore")

if generation() != 2:
    pytest.skip("needs the SageMaker Python SDK, V2 (make test-sdk)", allow_module_level=True)


@pytest.fixture
def sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sdk:
    """Beside ``src`` there are a folder and a file, and links to them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "module.py").write_text("X = 1\n")
    (tmp_path / "one.py").write_text("Y = 1\n")
    (tmp_path / "common").symlink_to(tmp_path / "lib")
    (tmp_path / "two.py").symlink_to(tmp_path / "one.py")
    return Sdk(tmp_path)


@pytest.mark.parametrize("part", ["lib", "lib/", "lib/.", "common", "common/", "one.py", "two.py"])
def test_dependencies_have_the_names_that_the_sdk_packs_them_with(sdk: Sdk, part: str) -> None:
    assert sdk.left(sdk.made(dependencies=[part])) == {}


def test_a_script_alone_may_be_a_link(sdk: Sdk) -> None:
    assert sdk.left(sdk.made(entry_point="two.py", source_dir=None)) == {}


def test_a_script_may_be_written_with_its_folder(sdk: Sdk) -> None:
    estimator = sdk.made(entry_point="./train.py", source_dir="src/")
    assert sdk.left(estimator) == {}
    pipeline = pipeline_from_estimator(estimator, S3, name="mine", workspace="s3://b/mine")
    assert pipeline.lower().graph.steps


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        ({"entry_point": "../one.py"}, "source_dir", "src holds no ../one.py; there is train.py"),
        ({"dependencies": ["nope"]}, "dependencies", "there is no nope"),
        ({"dependencies": [".."]}, "dependencies", ".. is packed by the SDK outside"),
        ({"dependencies": ["gone"]}, "dependencies", "gone is a link to something missing"),
        ({"dependencies": ["round"]}, "dependencies", "round/me is a link to a folder around it"),
        (
            {"dependencies": ["lib"], "entry_point": "trian.py"},
            "dependencies",
            "src holds no trian",
        ),
        ({"dependencies": ["keys"]}, "dependencies", "code/keys/.env looks like a secret"),
    ],
)
def test_code_that_cannot_be_sent_is_named(
    sdk: Sdk, tmp_path: Path, given: dict[str, Any], path: str, message: str
) -> None:
    (tmp_path / "gone").symlink_to("nowhere")
    (tmp_path / "round").mkdir()
    (tmp_path / "round" / "me").symlink_to(".")
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / ".env").write_text("TOKEN=1\n")
    estimator = sdk.made()
    # The SDK looks at some of these when the estimator is made.
    vars(estimator).update({"source_dir": "src", "entry_point": "train.py"} | given)
    [(place, text)] = refusals(estimator).items()
    assert place == f"estimator.{path}"
    assert text.startswith(message)


def test_a_secret_of_a_dependency_is_sent_where_it_is_named(sdk: Sdk, tmp_path: Path) -> None:
    (tmp_path / "lib" / ".env").write_text("TOKEN=1\n")
    assert sdk.left(sdk.made(dependencies=["lib"]), include=["lib/.env"]) == {}


def test_a_folder_for_the_code_is_that_of_an_equal_conversion(sdk: Sdk) -> None:
    estimator = sdk.made(dependencies=["lib"])
    first = from_estimator(estimator, S3, code="packed")
    assert from_estimator(estimator, S3, code="packed") == first
    Path("packed/more.py").write_text("")
    assert "code='packed', holds other files" in refusals(estimator, code="packed")["estimator"]
