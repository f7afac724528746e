"""Each rule of a well-formed workflow has an example that breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestration import Expression, Ref
from orchestration.checks import rules
from orchestration.errors import GraphError
from orchestration.expressions import Compare, Item, Result, Run, Tree, join, parameter
from orchestration.graph import (
    LATENCY,
    Adopt,
    Alternative,
    Call,
    Choose,
    ErrorPattern,
    Fail,
    Failure,
    Fallback,
    ForEach,
    Graph,
    Guarded,
    Operation,
    Output,
    Parallel,
    ParameterSpec,
    Read,
    Recovery,
    Step,
    Until,
    Wait,
    Workflow,
)


def get(name: str, key: Any = "key", **further: Any) -> Call:
    """A call with one output, ``tag``."""
    return Call(
        name=name,
        operation=Operation("s3", "GetObject", {"Bucket": "b", "Key": key}),
        outputs={"tag": Output(("ETag",))},
        **further,
    )


def found(*steps: Step, **further: Any) -> dict[str, str]:
    workflow = Workflow(name="w", graph=Graph(steps), **further)
    return {problem.path: problem.message for problem in rules.problems(workflow)}


TAG = Result("a", "tag")
YES = Compare("eq", 1, 1)


def choose(then: Step, condition: Expression[bool] = YES, **further: Any) -> Choose:
    return Choose(name="c", condition=condition, then=Graph((then,)), otherwise=Graph(), **further)


def each(*body: Step, **further: Any) -> ForEach:
    given: dict[str, Any] = {"items": [1], "collect": {}, "max_concurrency": 1}
    return ForEach(name="l", body=Graph(body), **given | further)


def guard(*body: Step, cleanup: Step | None = None, **acquire: Any) -> Guarded:
    return Guarded(
        name="g",
        acquire=get("g.acquire", **acquire),
        body=Graph(body),
        cleanup=Graph((cleanup or get("g.release", Result("g.acquire", "tag")),)),
    )


def poll(**further: Any) -> Until:
    given: dict[str, Any] = {
        "poll": Operation("sagemaker", "DescribeTrainingJob", {"TrainingJobName": "j"}),
        "status": ("TrainingJobStatus",),
        "success": frozenset(["Completed"]),
        "failure": frozenset(["Failed"]),
    }
    return Until(**given | further)


def test_a_well_formed_workflow_has_no_problem() -> None:
    steps = (
        get("a"),
        get("b", TAG),
        choose(get("c.one", TAG)),
        each(get("l.one", join("k", Item())), collect={"t": Result("l.one", "tag"), "i": Item()}),
        guard(get("g.one", Result("g.acquire", "tag"))),
        get("z", Result("g.one", "tag"), after=("c", "l")),
    )
    workflow = Workflow(name="w", graph=Graph(steps), outputs={"t": TAG})
    assert rules.check(workflow) is workflow


NAMES: list[tuple[Step, str, str]] = [
    (get("Upper"), "Upper", "snake case"),
    (get("a__b"), "a__b", "snake case"),
    (get("a-b"), "a-b", "snake case"),
    (get("a."), "a.", "snake case"),
    (get("a"), "a", "2 steps have this name"),
]
READS: list[tuple[Step, str, str]] = [
    (get("b", Result("aa", "tag")), "b", "does not exist; did you mean 'a'?"),
    (get("b", Result("a", "tga")), "b", "reads a.tga, which it does not give; did you mean 'tag'?"),
    (get("b", parameter("bukcet")), "b", "there is no parameter 'bukcet'; did you mean 'bucket'?"),
    (get("b", Item()), "b", "reads a loop's element outside of any loop"),
    (get("b", Ref("train", "x")), "b", "still refers to the stage output train.x"),
    (get("b", after=("x",)), "b", "waits for the unknown step 'x'"),
    (get("b", Result("b", "tag")), "b", "reads the step 'b', which is itself"),
    (get("b", after=("b",)), "b", "waits for 'b', which is itself"),
    (Wait(name="b", seconds=Result("c", "x")), "b", "does not exist"),
    (Read(name="b", uri=Item(), outputs={}), "b", "outside of any loop"),
    (Fail(name="b", error="E", cause=Item()), "b", "outside of any loop"),
    (choose(get("b"), Compare("eq", Item(), 1)), "c", "outside of any loop"),
    (choose(get("b", after=("c",))), "b", "need not have run by then"),
    (choose(get("b"), Compare("eq", Result("b", "tag"), 1)), "c", "need not have run by then"),
    (each(get("b"), items=Item()), "l", "outside of any loop"),
    (each(get("b"), items=Result("b", "tag")), "l", "need not have run by then"),
    (each(choose(get("b")), collect={"x": Result("b", "tag")}), "l", "need not have run by then"),
    (guard(get("b"), key=Result("b", "tag")), "g.acquire", "need not have run by then"),
    (guard(get("b", Result("g.release", "tag"))), "b", "need not have run by then"),
    (guard(get("b"), cleanup=get("d", Result("b", "tag"))), "d", "need not have run by then"),
    (guard(get("b", after=("g",))), "b", "need not have run by then"),
    (
        Parallel(name="p", branches=(Graph((get("d"),)), Graph((get("b", Result("d", "tag")),)))),
        "b",
        "need not have run by then",
    ),
]
SHAPES: list[tuple[Step, str, str]] = [
    (
        Read(name="b", uri="s3://b/k", outputs={"n": Output(("n",), parse=True)}),
        "b",
        "output 'n': expected a field of the report",
    ),
    (
        Read(name="b", uri="s3://b/k", outputs={"n": Output(())}),
        "b",
        "output 'n': expected a field of the report",
    ),
    (each(get("b"), max_concurrency=0), "l", "max_concurrency is at least 1"),
    (each(), "l", "the loop's body is empty"),
    (Choose(name="b", condition=YES, then=Graph(), otherwise=Graph()), "b", "both branches"),
    (Guarded(name="b", acquire=get("d"), body=Graph(), cleanup=Graph()), "b", "clean-up is empty"),
    (guard(until=poll()), "g.acquire", "nothing would release if the wait failed"),
    (Parallel(name="b", branches=()), "b", "there is no branch"),
    (
        replace(get("b"), adopt=Adopt(exists=ErrorPattern("X"))),
        "b",
        "adopts what exists, so its own response has no outputs",
    ),
    (
        replace(get("b"), recoveries=(Recovery(ErrorPattern("X"), {"other": 1}),)),
        "b",
        "a recovery gives exactly the step's outputs",
    ),
    (
        replace(get("b"), outputs={LATENCY: Output(("ETag",))}, timed=True),
        "b",
        "only one plain request gives latency_ms",
    ),
    (
        replace(
            get("b"),
            recoveries=(Recovery(ErrorPattern("X"), {"tag": 1}),),
            failure=Failure(error="X", remedy=""),
        ),
        "b",
        "no error is an answer to it",
    ),
    (
        get("b", until=poll(success=frozenset(["Failed"]))),
        "b",
        "Failed can't be both success and failure",
    ),
]


def started(name: Tree, label: str = "x", **request: Any) -> Alternative:
    named = {"TrainingJobName": name}
    return Alternative(
        label=label,
        operation=Operation("sagemaker", "CreateTrainingJob", {**JOB, **named, **request}),
        poll=Operation("sagemaker", "DescribeTrainingJob", named),
    )


ABSENT = ErrorPattern("ResourceNotFound")
NOT_NAMED = ErrorPattern("ResourceInUse")
KIND = Operation("s3", "GetObject", {"Bucket": "b", "Key": "k", "TrainingJobName": "k"})
SENT = "b: CreateTrainingJob"
JOB: dict[str, Tree] = {
    "RoleArn": "arn:aws:iam::123456789012:role/trainer",
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/out"},
}


def falls_back(*others: Alternative, until: Any = None, adopt: Any = None, **how: Any) -> Call:
    given: dict[str, Any] = {"reasons": ("CapacityError",)}
    own = started("j")
    return Call(
        name="b",
        operation=own.operation,
        until=until or poll(reason=("FailureReason",), absent=(ABSENT,)),
        adopt=adopt or Adopt(exists=ErrorPattern("ResourceInUse"), name_field="TrainingJobName"),
        fallback=Fallback(label="own", alternatives=others, **{**given, **how}),
    )


def test_a_call_that_falls_back_is_well_formed() -> None:
    named = [started(join("j-", Run())), started(join("j-", Run(), "-b"))]
    assert found(falls_back(*named)) == {}
    assert found(falls_back(wait_s=60)) == {}


NUMBERED = started(join("j-", Run(), "-2"))
FALLBACKS: list[tuple[Step, str, str]] = [
    (falls_back(), "b", "falls back on nothing"),
    (falls_back(wait_s=60, pause_s=0.5), "b", "pauses 0.5 s between two rounds"),
    (falls_back(started("k"), reasons=()), "b", "nothing says when"),
    (falls_back(started("k"), reasons=("",)), "b", "an empty reason takes every failure"),
    (falls_back(started("k"), until=poll(absent=(ABSENT,))), "b", "does not say where it stands"),
    (falls_back(started("k"), until=poll(reason=("R",))), "b", "how the poll tells that a job"),
    (falls_back(started("k"), adopt=Adopt(exists=NOT_NAMED)), "b", "without adopt.name_field"),
    (replace(falls_back(started("k")), until=None), "b", "give it until"),
    (falls_back(started("j")), "b", "has the TrainingJobName of another"),
    (falls_back(started("j-2")), "b", "let it end in a letter"),
    (falls_back(started(join("j-", Run())), NUMBERED), "b", "let it end in a letter"),
    (falls_back(replace(started("k"), operation=KIND)), "b", "is s3:GetObject; it must be"),
    (falls_back(started(Result("c", "x"))), "b", "does not exist"),
    (falls_back(started("k", RoleArm="x")), f"{SENT} RoleArm", "is unknown"),
]


@pytest.mark.parametrize(("step", "path", "message"), [*NAMES, *READS, *SHAPES])
def test_a_broken_rule_is_reported(step: Step, path: str, message: str) -> None:
    problems = found(get("a"), step, parameters=(ParameterSpec(name="bucket"),))
    assert message in problems[path]


@pytest.mark.parametrize(("step", "path", "message"), FALLBACKS)
def test_a_fallback_that_could_pay_twice_is_reported(step: Step, path: str, message: str) -> None:
    problems = rules.problems(Workflow(name="w", graph=Graph((step,))))
    assert any(p.path == path and message in p.message for p in problems), problems


def test_a_cycle_is_reported_at_any_depth() -> None:
    pair = (get("x", after=("y",)), get("y", after=("x",)))
    assert "x -> y -> x" in found(*pair)[""]
    assert "x -> y -> x" in found(guard(*pair))[""]


def test_a_poll_reads_what_its_call_gave_and_nothing_later() -> None:
    def started(read: str) -> Step:
        described = Operation(
            "sagemaker", "DescribeTrainingJob", {"TrainingJobName": Result("b", read)}
        )
        outputs = {"status": Output(("TrainingJobStatus",))}
        return get("b", until=poll(poll=described, outputs=outputs))

    assert found(started("tag")) == {}
    assert "known only afterwards" in found(started("status"))["b"]


def test_results_inside_a_guard_or_parallel_are_read_afterwards() -> None:
    both = Parallel(name="p", branches=(Graph((get("one"),)), Graph((get("two"),))))
    later = get("b", join(Result("one", "tag"), Result("two", "tag"), Result("g.one", "tag")))
    assert found(both, guard(get("g.one")), later) == {}


def test_a_result_inside_a_branch_or_loop_is_not() -> None:
    for inner in (choose(get("x")), each(get("x"))):
        assert "need not have run" in found(inner, get("b", Result("x", "tag")))["b"]


def test_outputs_of_a_workflow_are_checked_too() -> None:
    assert "does not exist" in found(get("a"), outputs={"x": Result("z", "tag")})["outputs"]


def test_requests_polls_and_stops_are_checked_against_the_api() -> None:
    wrong = Operation("sagemaker", "StopTrainingJob", {"Name": "j"})
    step = get("b", key=None, until=poll(stop=wrong, status=("Status",)))
    problems = found(step)
    assert problems["b: GetObject Key"] == "expected text, not None"
    assert problems["b: StopTrainingJob TrainingJobName"] == "is required"
    assert problems["b: DescribeTrainingJob"].endswith("a response has no Status")


def test_a_parameter_in_a_request_has_the_apis_type() -> None:
    request: dict[str, Tree] = {"Bucket": "b", "MaxKeys": parameter("n")}
    step = Call(name="b", operation=Operation("s3", "ListObjectsV2", request))
    [message] = found(step, parameters=(ParameterSpec(name="n"),)).values()
    assert "takes a number, and the parameter 'n' is a string" in message
    assert found(step, parameters=(ParameterSpec(name="n", type="number"),)) == {}


def test_everything_wrong_is_in_one_error() -> None:
    with pytest.raises(GraphError) as error:
        rules.check(Workflow(name="w", graph=Graph((get("A"), get("b", Item())))))
    assert len(error.value.problems) == 2
