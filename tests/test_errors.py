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
    UnsupportedError,
    near,
)

TWO = (Problem("stages.train", "is wrong"), Problem("", "so is this"))


def test_a_text_is_one_problem_and_not_its_letters() -> None:
    assert str(UnsupportedError("no way")) == "no way"


def test_a_misspelling_suggests_the_near_name() -> None:
    assert near("trian", ["evaluate", "train"]) == "; did you mean 'train'?"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("Stages", "stages"),
        ("rtraining", "training"),
        ("SNS", "sns"),
        ("env", "environment"),
        ("train", "training_job"),
        ("aws_region", "region"),
        ("Berlin", "Europe/Berlin"),
        ("ml.p4d.24xlrge", "ml.p4d.24xlarge"),
        ("retries", "retry"),
    ],
)
def test_a_name_is_suggested_where_it_is_close(name: str, known: str) -> None:
    assert near(name, [known, "unlike"]) == f"; did you mean {known!r}?"


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("catch", "batch"),
        ("inputs", "input_mode"),
        ("resources", "source"),
        ("role_arn", "profiler"),
        ("ml.p99.large", "ml.p2.xlarge"),
        ("Send", "SetEndpointAttributes"),
    ],
)
def test_another_word_is_not_suggested(name: str, known: str) -> None:
    assert near(name, [known]) == f"; there is {known}"


def test_two_names_are_suggested_where_either_may_be_meant() -> None:
    known = ["instance_count", "instance_type", "volume_gib"]
    assert near("instances", known) == "; did you mean 'instance_type' or 'instance_count'?"
    assert near("instance_typ", known) == "; did you mean 'instance_type'?"


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


@pytest.mark.parametrize(
    ("problem", "path"),
    [
        (Problem("tags.a", "m"), "tags.a"),
        (Problem("cluster.groups", "m", stage="train"), "stages.train.cluster.groups"),
        (Problem("", "m", stage="train"), "stages.train"),
        (Problem("CreateModel Tags", "m", step="serve.model"), "serve.model: CreateModel Tags"),
        (Problem("", "m", step="train.job"), "train.job"),
    ],
)
def test_a_problem_says_its_whole_place(problem: Problem, path: str) -> None:
    assert (problem.path, str(problem)) == (path, f"{path}: m")


def test_a_problem_of_a_field_is_one_of_the_object_that_holds_it() -> None:
    inner = Problem("uri", "m", stage="train")
    assert inner.within("channels.train") == Problem("channels.train.uri", "m", stage="train")
    assert Problem("", "m").within("schedule") == Problem("schedule", "m")
