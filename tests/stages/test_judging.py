"""A script that judges the answers of a new model: its steps, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.expressions import evaluate
from orchestration.expressions.evaluate import Values
from orchestration.graph import Call, Graph, Read, all_steps
from orchestration.stages.stage import SAMPLE
from tests.stages.test_endpoint_updates import deployment, problems

JUDGE = {"entry_point": "judge.py", "uri": "s3://bucket/code"}
CASES = [{"request": {"a": 1}}, {"request": 2, "status": 400}, {"request": 3}]


def test_a_script_reads_the_answers_and_decides_before_any_traffic_moves() -> None:
    made = deployment(judge=JUDGE, update={"trial": {"cases": CASES, "after": True}})
    steps = {step.name: step for step in all_steps(Graph(made.lower(SAMPLE).steps))}
    written = [name for name in steps if name.endswith("_recorded")]
    assert written == [f"deploy.{kind}_{n}_recorded" for kind in ("trial", "check") for n in (1, 3)]
    results = answered("a")
    put = steps["deploy.trial_1_recorded"]
    assert isinstance(put, Call)
    sent: Any = evaluate(put.operation.request, results)
    assert sent["Body"] == {
        "request": {"a": 1},
        "content_type": "application/json",
        "answer": "[1]",
    }
    assert sent["Key"].endswith("0123456789ab/deploy/trial/answers/01.json")
    names = set()
    for kind, error in (("trial", "TrialFailed"), ("check", "CheckFailed")):
        job, verdict = steps[f"deploy.{kind}_judge"], steps[f"deploy.{kind}_verdict"]
        assert isinstance(job, Call)
        assert isinstance(verdict, Read)
        request: Any = evaluate(job.operation.request, results)
        names.add(request["ProcessingJobName"])
        other: Any = evaluate(job.operation.request, answered("b"))
        names.add(other["ProcessingJobName"])
        assert request["AppSpecification"]["ImageUri"] == made.image
        [output] = request["ProcessingOutputConfig"]["Outputs"]
        token = request["ProcessingJobName"].rpartition("-")[2]
        assert str(output["S3Output"]["S3Uri"]).endswith(f"/{kind}/verdict/{token}")
        assert evaluate(verdict.uri, results) == f"{output['S3Output']['S3Uri']}/verdict.json"
        passed: Any = steps[f"deploy.{kind}_judged"]
        for value, well in ((True, True), (False, False), ("true", False), (1, False)):
            told = Values({verdict.name: {"passed": value, "reason": "no"}}, {}, "0123456789ab")
            assert evaluate(passed.condition, told) is well
        assert passed.error == error
    assert len(names) == 4


def answered(third: str) -> Values:
    """Return what the steps gave that asked, and recorded; ``third``: the third answer's ETag."""
    steps: dict[str, dict[str, Any]] = {"deploy.trial_1": {"text": "[1]"}}
    for kind in ("trial", "check"):
        steps |= {f"deploy.{kind}_{n}_recorded": {"etag": tag} for n, tag in ((1, "x"), (3, third))}
    return Values(steps, {}, "0123456789ab")


@pytest.mark.parametrize(
    ("fields", "field", "message"),
    [
        ({"judge": JUDGE}, "judge", "judges the answers to cases; give update: {trial: [...]}"),
        (
            {"update": {"trial": {"cases": CASES, "job": {}}}},
            "update.trial.job",
            "nothing runs in it; give the stage a judge",
        ),
        (
            {"judge": JUDGE, "update": {"trial": CASES[1:2]}},
            "judge",
            "every case is to be refused, which leaves no answer to judge",
        ),
        (
            {
                "judge": {**JUDGE, "uri": "s3://bucket/code.tar.gz"},
                "update": {"trial": CASES},
            },
            "judge",
            "is an archive, which a processing job does not unpack; give it a directory, or "
            "the uri of a prefix that holds files/",
        ),
        (
            {
                "judge": JUDGE,
                "update": {
                    "trial": {
                        "cases": CASES,
                        "job": {"image": "i:1", "framework": {"name": "pytorch"}},
                    }
                },
            },
            "update.trial.job.framework",
            "there is an image already; remove one of them",
        ),
        (
            {
                "judge": JUDGE,
                "update": {"trial": CASES},
                "package_group": "prices",
                **dict.fromkeys(("model_data", "image")),
            },
            "update.trial.job",
            "needs an image for the judge: {image: ...}",
        ),
    ],
)
def test_a_script_that_cannot_judge_is_refused(
    fields: dict[str, Any], field: str, message: str
) -> None:
    assert problems(**fields)[field] == message
