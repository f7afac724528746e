"""Strategies as users write them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, get_args

import pytest
from pydantic import TypeAdapter, ValidationError

from orchestration.strategies import MPI, SMDDP, Strategy

ADAPTER: TypeAdapter[Strategy] = TypeAdapter(Strategy)


def test_strategies_are_frozen_and_know_their_fields() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        MPI().processes_per_host = 2  # type: ignore[misc]  # what is tested
    with pytest.raises(ValidationError, match="Extra inputs"):
        MPI.model_validate({"processes": 2})


def test_a_strategy_is_told_by_its_kind() -> None:
    assert ADAPTER.validate_python({"kind": "smddp", "launcher": "torchrun"}) == SMDDP(
        launcher="torchrun"
    )


@pytest.mark.parametrize("given", [{"kind": "ddp"}, {"kind": "smddp", "launcher": "mpiexec"}])
def test_an_unknown_word_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(given)


def test_every_strategy_and_field_of_its_own_says_what_it_is() -> None:
    definitions = ADAPTER.json_schema()["$defs"]
    assert definitions.keys() == {member.__name__ for member in get_args(get_args(Strategy)[0])}
    assert all(each.get("description") for each in definitions.values())


def test_importing_the_strategies_reads_no_table() -> None:
    code = (
        "import sys, orchestration.strategies as s\n"
        "from orchestration.strategies import support\n"
        "assert support.rules.cache_info().currsize == 0\n"
        "assert not {'botocore', 'boto3', 'airflow'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
