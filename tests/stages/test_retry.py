"""Further tries of a stage's jobs, before anything runs."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.backends import stepfunctions
from orchestration.errors import PipelineError
from orchestration.execution.verdicts import judged
from orchestration.graph import Call, all_steps
from tests.stages.test_options import STAGES


def pipeline(name: str, retry: Any, **fields: Any) -> Pipeline:
    stage = {**STAGES[name], **fields, **({} if retry is None else {"retry": retry})}
    return Pipeline.parse({"name": "tried", "workspace": "s3://b/w", "stages": {name: stage}})


def jobs(made: Pipeline) -> list[Call]:
    steps = all_steps(made.lower().graph)
    return [s for s in steps if isinstance(s, Call) and s.adopt is not None and s.adopt.name_field]


@pytest.mark.parametrize("name", ["train", "evaluate"])
def test_every_job_of_a_stage_has_its_tries(name: str) -> None:
    [tried], [once] = jobs(pipeline(name, {"attempts": 4})), jobs(pipeline(name, None))
    assert tried.adopt is not None
    assert once.adopt is not None
    assert (tried.adopt.tries, once.adopt.tries) == (4, 1)


@pytest.mark.parametrize(
    ("name", "retry", "fields", "message"),
    [
        ("deploy", {"attempts": 2}, {}, r"deploy\.retry: this stage starts no job"),
        ("train", {"attempts": 1}, {}, r"train\.retry\.attempts"),
        ("train", {"attempts": 6}, {}, r"train\.retry\.attempts"),
        ("train", {"atempts": 2}, {}, r"train\.retry\.atempts: .*did you mean 'attempts'"),
        ("train", {"attempts": 2, "on": []}, {}, r"train\.retry\.on: .*the least is 1"),
        ("train", {"attempts": 2, "on": ["capasity"]}, {}, r"train\.retry\.on\[0\]: .*'capacity'"),
        (
            "train",
            {"attempts": 2, "on": ["capacity", "capacity"]},
            {},
            r"train\.retry\.on: names capacity twice",
        ),
        (
            "evaluate",
            {"attempts": 2, "on": ["job_failure", "time_limit"]},
            {},
            r"evaluate\.retry\.on\[1\]: no job of this stage says that it ran out.* time_limit",
        ),
        (
            "train",
            {"attempts": 2},
            {
                "cluster": {
                    "instance_type": "ml.c5.xlarge",
                    "fallbacks": [{"instance_type": "ml.c5.2xlarge"}],
                }
            },
            r"train\.retry: a job with fallback clusters",
        ),
    ],
)
def test_what_can_not_be_tried_again_is_refused(
    name: str, retry: Any, fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(PipelineError, match=message):
        pipeline(name, retry, **fields)


OWN = {"TrainingJobStatus": "Failed", "FailureReason": "AlgorithmError: exit code: 1"}
NO_MACHINES = {"TrainingJobStatus": "Failed", "FailureReason": "CapacityError: none left"}
OUT_OF_TIME = {"TrainingJobStatus": "Stopped", "SecondaryStatus": "MaxRuntimeExceeded"}


@pytest.mark.parametrize(
    ("on", "response", "repeatable"),
    [
        (None, {"TrainingJobStatus": "Failed"}, True),
        (None, OWN, True),
        (None, NO_MACHINES, True),
        (None, {"TrainingJobStatus": "Stopped"}, False),
        (None, OUT_OF_TIME, False),
        (["job_failure"], OWN, True),
        (["job_failure"], NO_MACHINES, False),
        (["capacity"], NO_MACHINES, True),
        (["capacity"], OWN, False),
        (["capacity"], {"TrainingJobStatus": "Failed"}, False),
        (["time_limit"], OUT_OF_TIME, True),
        (["time_limit"], OWN, False),
        (["time_limit", "capacity", "job_failure"], {"TrainingJobStatus": "Stopped"}, False),
    ],
)
def test_only_the_failures_that_are_named_are_tried_again(
    on: list[str] | None, response: dict[str, str], repeatable: bool
) -> None:
    [call] = jobs(pipeline("train", {"attempts": 2, **({} if on is None else {"on": on})}))
    verdict = judged(call, response, "job")
    assert getattr(verdict, "repeatable", None) is repeatable
    [once] = jobs(pipeline("train", None))
    assert getattr(judged(once, response, "job"), "repeatable", None) is False


def test_the_usual_failures_need_not_be_named() -> None:
    named = pipeline("train", {"attempts": 2, "on": ["capacity", "job_failure"]})
    assert named.lower() == pipeline("train", {"attempts": 2}).lower()


def test_a_state_machine_counts_the_tries_and_those_of_earlier_attempts() -> None:
    def text(made: Pipeline) -> str:
        return json.dumps(stepfunctions.render(made.lower()), sort_keys=True)

    tried = text(pipeline("train", {"attempts": 3}))
    assert len(re.findall(r"TrainingJobStatus = 'Failed' and \$\w+Number < 3 ", tried)) == 1
    assert re.search(r"\$\w+Number < \$attempt \+ 2 ", tried)
    once = text(pipeline("train", None))
    assert re.search(r"\$\w+Number < \$attempt ", once)
    assert "$attempt +" not in once
