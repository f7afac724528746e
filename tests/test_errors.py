"""Errors say what is wrong, where, and what to do, and survive a trip between processes."""

from __future__ import annotations

import copy
import pickle

import pytest

from orchestration.errors import (
    GraphError,
    OrchestrationError,
    PipelineError,
    Problem,
    RunError,
    near,
)

TWO = (Problem("stages.train", "is wrong"), Problem("", "so is this"))


def test_a_misspelling_suggests_the_near_name() -> None:
    assert near("trian", ["evaluate", "train"]) == "; did you mean 'train'?"


def test_without_a_near_name_the_known_ones_are_listed() -> None:
    assert near("xyz", ["b", "a"]) == "; there is a, b"
    assert near("xyz", []) == ""


def test_hundreds_of_names_are_not_listed() -> None:
    assert near("xyz", [f"ml.q{n}.large" for n in range(300)]).endswith("and 288 more")


def test_one_problem_is_its_own_message() -> None:
    assert str(PipelineError(TWO[:1])) == "stages.train: is wrong"


def test_all_problems_are_in_the_message() -> None:
    assert str(GraphError(TWO)).splitlines() == [
        "the step graph is not well formed (2 problems):",
        "  - stages.train: is wrong",
        "  - so is this",
    ]


@pytest.mark.parametrize("error", [PipelineError(TWO), GraphError(["text"])])
def test_an_error_comes_back_from_another_process_with_its_problems(error: PipelineError) -> None:
    for back in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert (type(back), str(back), back.problems) == (type(error), str(error), error.problems)


def test_a_failed_run_comes_back_with_error_and_cause() -> None:
    back = pickle.loads(pickle.dumps(RunError("States.Timeout", "too long")))
    assert (back.error, back.cause, str(back)) == (
        "States.Timeout",
        "too long",
        "States.Timeout: too long",
    )


@pytest.mark.parametrize("kind", OrchestrationError.__subclasses__())
def test_every_error_is_also_a_builtin_one(kind: type[OrchestrationError]) -> None:
    concrete = kind.__subclasses__() if kind.__name__.startswith("_") else [kind]
    assert all(issubclass(one, ValueError | TypeError | RuntimeError) for one in concrete)
