"""Workflows of every step kind, run by Airflow against an AWS at the wire."""

from __future__ import annotations

from typing import Any

import pytest

from orchestration.airflow import versions
from orchestration.expressions import (
    Apply,
    Compare,
    Field,
    Function,
    Item,
    Join,
    Json,
    Parameter,
    Result,
    apply,
    evaluate,
    join,
    run_id,
)
from orchestration.expressions.evaluate import Values, run_token
from orchestration.graph import (
    Call,
    Choose,
    ErrorPattern,
    Fail,
    ForEach,
    Graph,
    Operation,
    Output,
    Parallel,
    Read,
    Recovery,
    Step,
    Wait,
)
from orchestration.local.airflow import TaskState
from tests.airflow.conftest import Run, states
from tests.airflow.scripted_aws import ScriptedAws
from tests.airflow.workflows import file_system, training, workflow

# One Airflow for all of them.
pytestmark = pytest.mark.xdist_group("airflow")

LITERALS = {
    "jinja": "{{ ds }} {% raw %} {# x #}",
    "path": "$.x $$.Execution.Id",
    "quotes": "\"'`\\ \n\t",
    "unicode": "é 漢 🦊",
    "number": "3",
    "jsonata": "{% $states.input %}",
    "file": "template.sql",
    "key.$": "{{ ti }}",
}


def each(name: str, items: Any, *body: Step, width: int = 2, **fields: Any) -> ForEach:
    return ForEach(name=name, items=items, body=Graph(body), max_concurrency=width, **fields)


def element(name: str = "loop.job") -> Call:
    return training(name, job=join("element-", Item(), "-", run_id()))


def test_every_kind_in_one_workflow(run: Run, aws: ScriptedAws) -> None:
    aws.statuses["train-job"] = ["InProgress", "InProgress", "Completed"]
    token = run_token("hand_built/test_every_kind_in_one_workflow")
    aws.created[f"train-job-{token}"] = 1_700_000_000.25
    aws.objects["s3://bucket/ü x/report.json"] = {"loss": 0.25, "rows": [{"a": 1, "b": 2}]}
    train = training("train.job", HyperParameters=LITERALS)
    it = workflow(
        train,
        Read(
            name="report.read",
            uri=Join(("s3://", Parameter("bucket"), "/ü x/report.json")),
            outputs={
                "loss": Output(("loss",), kind="number"),
                "rows": Output(("rows",), kind="list", columns=("b",)),
            },
        ),
        Choose(
            name="gate.choose",
            condition=Compare("lt", Result("report.read", "loss"), Parameter("bound")),
            then=Graph((file_system("gate.lustre", Graph((training("gate.job"),))),)),
            otherwise=Graph((Fail(name="gate.fail", error="Gate", cause="x"),)),
            after=("train.job",),
        ),
        each(
            "loop.each",
            [1, 2, 3],
            element(),
            Choose(
                name="loop.choose",
                condition=Compare("eq", Item(), 2),
                then=Graph((Wait(name="loop.wait", seconds=1),)),
                otherwise=Graph(),
            ),
            collect={"n": Item(), "arn": Result("loop.job", "arn")},
        ),
        each("empty.each", [], element("empty.job"), collect={}),
        Parallel(
            name="side.both",
            branches=(
                Graph((Wait(name="side.left", seconds=1),)),
                Graph((training("side.right"),)),
                Graph(),
            ),
        ),
        Wait(name="last.wait", seconds=Parameter("pause"), after=("side.both", "gate.choose")),
        outputs={
            "artifacts": Result("train.job", "artifacts"),
            "started": Result("train.job", "started"),
            "metrics": Result("train.job", "metrics"),
            "rows": Result("report.read", "rows"),
            "items": Result("loop.each", "items"),
            "empty": Result("empty.each", "items"),
            "right": Result("side.right", "spot"),
        },
        parameters={"bucket": "other", "bound": 0.5, "pause": 30},
    )
    progress: list[TaskState] = []
    ended = run(it, progress, bucket="bucket")
    assert ended.state == "success", (ended.error, ended.cause)
    arn = "arn:aws:sagemaker:us-east-1:1:training-job/element-{}-" + token
    assert ended.outputs == {
        "artifacts": f"s3://bucket/train-job-{token}/model.tar.gz",
        "started": "2023-11-14T22:13:20.250Z",
        "metrics": [{"MetricName": "accuracy", "Value": 0.75}],
        "rows": [{"b": 2}],
        "items": [{"n": n, "arn": arn.format(n)} for n in (1, 2, 3)],
        "empty": [],
        "right": False,
    }
    [request] = [r for r in aws.of("CreateTrainingJob") if "HyperParameters" in r]
    assert request["HyperParameters"] == LITERALS
    assert aws.count()["CreateFileSystem"] == aws.count()["DeleteFileSystem"] == 1
    assert states(ended)["gate.fail"] == "skipped"
    assert {"deferred", "running", "success"} <= {
        task.state for task in progress if task.task_id == "train"
    }


def test_nothing_around_a_branch_not_taken_is_run(run: Run, aws: ScriptedAws) -> None:
    inside = Graph(
        (
            each("no.each", [1], element("no.job"), collect={}),
            file_system("no.lustre", Graph((training("no.train", after=("no.each",)),))),
        )
    )
    it = workflow(
        Choose(name="no.choose", condition=Compare("eq", 1, 2), then=inside, otherwise=Graph()),
        training("yes.job", after=("no.choose",)),
    )
    ended = run(it)
    assert ended.state == "success", (ended.error, ended.cause)
    assert aws.count().keys() == {"CreateTrainingJob", "DescribeTrainingJob"}
    assert states(ended)["no.results"] == states(ended)["no.lustre.delete"] == "skipped"


def test_a_guarded_body_that_loops_and_branches(run: Run, aws: ScriptedAws) -> None:
    body = Graph(
        (
            each("in.each", ["a", "b"], element("in.job"), collect={"x": Item()}),
            Choose(
                name="in.choose",
                condition=Compare("eq", apply(Function.COUNT, Result("in.each", "items")), 2),
                then=Graph((training("in.then"),)),
                otherwise=Graph(),
            ),
        )
    )
    it = workflow(
        file_system("in.lustre", body),
        training("out.job", after=("in.lustre",)),
        outputs={"items": Result("in.each", "items")},
    )
    ended = run(it)
    assert ended.state == "success", (ended.error, ended.cause)
    assert ended.outputs == {"items": [{"x": "a"}, {"x": "b"}]}
    order = [operation for operation, _ in aws.calls if not operation.startswith("Describe")]
    assert order.index("DeleteFileSystem") == len(order) - 2


def test_a_guarded_body_in_each_element_of_a_loop(run: Run, aws: ScriptedAws) -> None:
    inside = file_system("many.lustre", Graph((element("many.job"),)))
    it = workflow(
        each(
            "many.each", [1, 2], inside, width=1, collect={"id": Result("many.lustre.create", "id")}
        ),
        outputs={"items": Result("many.each", "items")},
    )
    ended = run(it)
    assert ended.state == "success", (ended.error, ended.cause)
    assert ended.outputs == {
        "items": [{"id": "fs-0123456789abcdef0"}, {"id": "fs-0123456789abcdef1"}]
    }
    assert aws.count()["DeleteFileSystem"] == 2


def test_a_failed_body_is_cleaned_up_after_and_its_error_stays(run: Run, aws: ScriptedAws) -> None:
    aws.statuses["bad-job"] = ["InProgress", "Failed"]
    aws.statuses["slow"] = ["InProgress"] * 20 + ["Completed"]
    body = Graph(
        (training("bad.job"), training("slow.job"), training("never.job", after=("bad.job",)))
    )
    ended = run(
        workflow(file_system("bad.lustre", body), training("later.job", after=("bad.lustre",)))
    )
    assert (ended.state, ended.error) == ("failed", "JobFailed")
    assert ended.cause is not None
    assert ended.cause.startswith("CreateTrainingJob bad-job-")
    assert ended.cause.endswith("ended as Failed: AlgorithmError: boom")
    found = states(ended)
    assert found["slow"] == found["bad.lustre.delete"] == "success"
    assert found["never"] == found["later"] == found["outputs"] == "upstream_failed"
    # The file system goes when nothing uses it any more, not when the first use failed.
    polls = [i for i, (name, r) in enumerate(aws.calls) if "slow" in str(r)]
    assert [name for name, _ in aws.calls].index("DeleteFileSystem") > max(polls)


def test_a_failed_cleanup_fails_the_run(run: Run, aws: ScriptedAws) -> None:
    aws.faults.append(("DeleteFileSystem", 400, "BadRequest", False))
    ended = run(workflow(file_system("leak.lustre", Graph((training("fine.job"),)))))
    assert (ended.state, ended.error) == ("failed", "BadRequest")
    assert states(ended)["outputs"] == "upstream_failed"


def test_nothing_is_cleaned_up_that_was_not_acquired(run: Run, aws: ScriptedAws) -> None:
    aws.faults.append(("CreateFileSystem", 400, "ServiceLimitExceeded", False))
    ended = run(workflow(file_system("no.lustre", Graph((training("no.job"),)))))
    assert (ended.state, ended.error) == ("failed", "ServiceLimitExceeded")
    assert aws.count().keys() == {"CreateFileSystem"}


def test_all_elements_run_though_one_fails(run: Run, aws: ScriptedAws) -> None:
    aws.statuses["element-2-"] = ["Failed"]
    it = workflow(each("loop.each", [1, 2, 3, 4], element(), collect={"n": Item()}))
    ended = run(it)
    assert (ended.state, ended.error) == ("failed", "JobFailed")
    assert "element-2-" in str(ended.cause)
    assert aws.count()["CreateTrainingJob"] == 4
    assert states(ended)["loop.each[1]"] == "failed"
    assert states(ended)["loop.results"] == "upstream_failed"


def test_a_loop_keeps_to_its_width(run: Run, aws: ScriptedAws) -> None:
    aws.statuses["element"] = ["InProgress", "InProgress", "InProgress", "Completed"]
    progress: list[TaskState] = []
    it = workflow(each("loop.each", list(range(5)), element(), width=2, collect={}))
    assert run(it, progress).state == "success"
    active: set[int] = set()
    widths = []
    for task in progress:
        if task.task_id == "loop.each" and task.map_index >= 0:
            active = (
                active | {task.map_index} if task.state != "success" else active - {task.map_index}
            )
            widths.append(len(active))
    # Before 3.2.2 those of a loop do not defer; a local Airflow runs one, and may have queued one.
    assert max(widths) in ((2,) if versions.COUNTS_DEFERRED else (1, 2))


def test_a_branch_can_fail_the_run(run: Run, aws: ScriptedAws) -> None:
    it = workflow(
        Choose(
            name="gate.choose",
            condition=Compare("gt", 1, 0.5),
            then=Graph(
                (
                    Fail(
                        name="gate.fail", error="BelowThreshold", cause=join("was ", Parameter("n"))
                    ),
                )
            ),
            otherwise=Graph(),
        ),
        training("later.job", after=("gate.choose",)),
        parameters={"n": 0.1},
    )
    ended = run(it)
    assert (ended.state, ended.error, ended.cause) == ("failed", "BelowThreshold", "was 0.1")
    assert not aws.calls


def test_a_wrong_input_fails_before_anything_else(run: Run, aws: ScriptedAws) -> None:
    it = workflow(training("train.job"), parameters={"bucket": "b", "count": 1})
    ended = run(it, bukcet="x")
    assert (ended.state, ended.error) == ("failed", "InvalidInput")
    assert ended.cause == "there is no parameter bukcet"
    # Airflow 3.2 makes no run with a value of a wrong type.
    wrong: dict[str, Any] = {"bucket": 1, "count": True} if versions.CALLS_ON_KILL else {"more": 1}
    ended = run(it, **wrong, other=2)
    assert ended.error == "InvalidInput"
    assert str(ended.cause).count(";") == len(wrong)
    assert not aws.calls


@pytest.mark.parametrize(
    "tree",
    [
        Join(("n-", Parameter("n"), Parameter("yes"))),
        apply(Function.HASH, Parameter("text")),
        Field(Item(), "k"),
        {"deep": [apply(Function.URL_PATH, Parameter("text")), run_id()]},
        Apply(Function.SUM, ([{"k": 1}, {"k": 2.5}], "k")),
    ],
    ids=["join", "hash", "field", "deep", "sum"],
)
def test_a_task_evaluates_what_evaluate_does(tree: Any, run: Run) -> None:
    parameters: dict[str, Json] = {"n": 1e-7, "yes": True, "text": "a b/é"}
    it = workflow(
        each("loop.each", [{"k": 7}], Wait(name="loop.wait", seconds=0), collect={"found": tree}),
        outputs={"items": Result("loop.each", "items")},
        parameters=parameters,
    )
    ended = run(it)
    identity = f"hand_built/test_a_task_evaluates_what_evaluate_does-{_id(tree)}"
    values = Values({}, parameters, run_token(identity), {"k": 7})
    assert ended.outputs == {"items": [{"found": evaluate(tree, values)}]}


def _id(tree: Any) -> str:
    names = {Join: "join", Field: "field", dict: "deep"}
    if isinstance(tree, Apply):
        return str(tree.function)
    return names[type(tree)]


def test_a_field_that_botocore_lacks_fails_the_run_before_anything_is_paid(
    run: Run, aws: ScriptedAws
) -> None:
    later = training("b.job", after=("a.job",), ResourceConfig={"Machines": "ml.p9.large"})
    ended = run(workflow(training("a.job"), later))
    assert (ended.state, ended.error) == ("failed", "UnknownField")
    assert "sagemaker:CreateTrainingJob ResourceConfig.Machines (b.job)" in str(ended.cause)
    assert not aws.calls


def test_a_recovery_is_an_answer(run: Run, aws: ScriptedAws) -> None:
    update = Call(
        name="endpoint.update",
        operation=Operation(
            "sagemaker", "UpdateEndpoint", {"EndpointName": "e", "EndpointConfigName": "c"}
        ),
        outputs={"arn": Output(("EndpointArn",))},
        recoveries=(
            Recovery(
                ErrorPattern("ValidationException", "Could not find endpoint"), {"arn": "none"}
            ),
        ),
    )
    ended = run(workflow(update, outputs={"arn": Result("endpoint.update", "arn")}))
    assert ended.outputs == {"arn": "none"}, (ended.error, ended.cause)
