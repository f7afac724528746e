"""Users' own classes of V2's estimators, and objects that are none.

Needs an environment with V2 (see README.md beside this file); skipped elsewhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.sdk.capture import S3, generation
from tests.sdk.natural import Sdk, refusals
from tests.sdk.options import IMAGE

# What the SDK warns of is its own affair.
pytestmark = pytest.mark.filterwarnings("ignore")

if generation() != 2:
    pytest.skip("needs the SageMaker Python SDK, V2 (make test-sdk)", allow_module_level=True)


@pytest.fixture
def sdk(tmp_path: Path) -> Sdk:
    return Sdk(tmp_path)


@pytest.mark.parametrize(
    "name",
    [
        *("hyperparameters", "_prepare_for_training", "_pytorch_distribution_configuration"),
        *("_stage_user_code_in_s3", "get_vpc_config", "training_image_uri", "_framework_name"),
        "fit",
    ],
)
def test_a_subclass_that_may_change_the_request_is_refused(sdk: Sdk, name: str) -> None:
    kind = sdk.names["PyTorch"]
    inherited = getattr(kind, name)
    mine = type("Mine", (kind,), {name: inherited})
    called = "()" if callable(inherited) else ""
    assert f"Mine.{name}{called} replaces" in refusals(sdk.made(mine))["estimator"]


@pytest.mark.parametrize("name", ["report", "deploy", "create_model", "logs", "__init__"])
def test_a_subclass_that_changes_nothing_of_the_request_is_converted(sdk: Sdk, name: str) -> None:
    kind = sdk.names["PyTorch"]
    mine = type("Mine", (kind,), {name: getattr(kind, name, lambda self: None)})
    assert sdk.left(sdk.made(mine), S3) == {}


def test_attributes_that_only_a_subclass_knows_are_its_own_affair(sdk: Sdk) -> None:
    kind: Any = sdk.names["PyTorch"]

    class Team(kind):  # type: ignore[misc]
        def __init__(self, team: str, **given: Any) -> None:
            super().__init__(**given)
            self.team = team

    assert sdk.left(sdk.made(Team, team="ours")) == {}


def test_what_a_subclass_sets_of_the_sdk_s_attributes_is_read(sdk: Sdk) -> None:
    kind: Any = sdk.names["PyTorch"]

    class Team(kind):  # type: ignore[misc]
        def __init__(self, **given: Any) -> None:
            super().__init__(**given)
            self.code_location = "s3://b/c"

    assert "estimator.code_location" in refusals(sdk.made(Team))


def test_a_function_of_one_estimator_is_refused_like_that_of_a_class(sdk: Sdk) -> None:
    estimator = sdk.made()
    estimator.hyperparameters = lambda: {"epochs": "3"}
    assert "replaces the SDK's own" in refusals(estimator)["estimator.hyperparameters"]


def test_a_framework_of_one_s_own_is_refused_in_words(sdk: Sdk) -> None:
    framework = sdk.names["PyTorch"].__mro__[1]
    names = ("create_model", "_prepare_init_params_from_job_description")
    members = dict.fromkeys(names, lambda self: None)
    mine = type("Mine", (framework,), {**members, "training_image_uri": lambda self: IMAGE})
    estimator = sdk.made(mine, image_uri=IMAGE)
    assert refusals(estimator).keys() == {"estimator"}


def test_a_class_is_no_estimator(sdk: Sdk) -> None:
    assert "is the class PyTorch, not an" in refusals(sdk.names["PyTorch"])["estimator"]
