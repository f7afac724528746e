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


@pytest.mark.parametrize(
    ("response", "repeatable"),
    [
        ({"TrainingJobStatus": "Failed"}, True),
        ({"TrainingJobStatus": "Stopped"}, False),
        ({"TrainingJobStatus": "Stopped", "SecondaryStatus": "MaxRuntimeExceeded"}, False),
    ],
)
def test_only_what_failed_by_itself_is_tried_again(
    response: dict[str, str], repeatable: bool
) -> None:
    [call] = jobs(pipeline("train", {"attempts": 2}))
    verdict = judged(call, response, "job")
    assert getattr(verdict, "repeatable", None) is repeatable
    [once] = jobs(pipeline("train", None))
    assert getattr(judged(once, response, "job"), "repeatable", None) is False


def test_a_state_machine_counts_the_tries_and_those_of_earlier_attempts() -> None:
    def text(made: Pipeline) -> str:
        return json.dumps(stepfunctions.render(made.lower()), sort_keys=True)

    tried = text(pipeline("train", {"attempts": 3}))
    assert len(re.findall(r"TrainingJobStatus = 'Failed' and \$\w+Number < 3 ", tried)) == 1
    assert re.search(r"\$\w+Number < \$attempt \+ 2 ", tried)
    once = text(pipeline("train", None))
    assert re.search(r"\$\w+Number < \$attempt ", once)
    assert "$attempt +" not in once
