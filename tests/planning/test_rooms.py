"""The planner's rooms as a user meets them: names, data files, examples, and what loads when."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import subprocess
import sys

import pytest

import orchestration.planning

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(orchestration.planning.__path__, "orchestration.planning.")
)


@pytest.mark.parametrize("name", orchestration.planning.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(orchestration.planning, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'cheapest_plan'"):
        getattr(orchestration.planning, "cheapest_plan")  # noqa: B009 - mypy knows that it is missing


@pytest.mark.parametrize("name", ["orchestration.planning", *MODULES])
def test_examples_in_docstrings_hold(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_a_request_loads_neither_costs_nor_the_search() -> None:
    """Parsing a pipeline's file reads requests, in every worker of a scheduler."""
    code = (
        "import sys\n"
        "from orchestration.planning.search.request import PlanRequest\n"
        "names = [name for name in sys.modules if name.startswith('orchestration.planning.')]\n"
        "print([name for name in names if '.cost' in name or name.endswith('.find')])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    )
    assert result.stdout.strip() == "[]"


def test_the_evaluation_is_a_command_of_the_package() -> None:
    command = [sys.executable, "-m", "orchestration.planning.evaluate", "--help"]
    result = subprocess.run(command, capture_output=True, check=True, text=True)
    assert "python -m orchestration.planning.evaluate" in result.stdout
