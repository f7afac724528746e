"""What steps do, without a clock and without a network."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from orchestration.errors import RunError
from orchestration.execution.effects import Aborted, ServiceError, Trouble
from orchestration.execution.places import Attempt
from orchestration.execution.scope import Scope
from orchestration.execution.steps import performed
from orchestration.expressions import Compare, Function, Item, Json, Result, apply
from orchestration.expressions.evaluate import Values
from orchestration.graph import (
    LATENCY,
    Adopt,
    Call,
    Choose,
    ErrorPattern,
    Fail,
    Fold,
    ForEach,
    Graph,
    Guarded,
    Operation,
    Output,
    Pages,
    Parallel,
    Read,
    Recovery,
    Require,
    Retry,
    Step,
    Until,
    Wait,
)
from tests.performances.scripted import Answer, ScriptedEdge, answers, perform

RUNS: Answer = {"Status": "InProgress"}
DONE: Answer = {"Status": "Completed", "Artifacts": "s3://b/model"}
BAD: Answer = {"Status": "Failed", "Reason": "AlgorithmError: nan"}
EXISTS = ServiceError("ResourceInUse", "Training job names must be unique")
FIRST = Attempt()
THROTTLED = ServiceError("ThrottlingException", "Rate exceeded", passing=True)


def job(name: str = "train.job", **further: Any) -> Call:
    described = Operation("sagemaker", "DescribeTrainingJob", {"TrainingJobName": name})
    until = Until(
        poll=described,
        status=("Status",),
        success=frozenset(["Completed"]),
        failure=frozenset(["Failed"]),
        reason=("Reason",),
        timeout_s=3600,
        stop=Operation("sagemaker", "StopTrainingJob", {"TrainingJobName": name}),
        outputs={"model": Output(("Artifacts",))},
    )
    return Call(
        name=name,
        operation=Operation("sagemaker", "CreateTrainingJob", {"TrainingJobName": name}),
        adopt=Adopt(exists=ErrorPattern("ResourceInUse"), name_field="TrainingJobName"),
        until=replace(until, **further.pop("until", {})),
        **further,
    )


def call(name: str, operation: str = "CreateModel", **further: Any) -> Call:
    return Call(name=name, operation=Operation("sagemaker", operation, {"N": name}), **further)


def run(*steps: Step, edge: ScriptedEdge, attempt: Attempt = FIRST) -> tuple[ScriptedEdge, Scope]:
    scope = Scope(Values({}, {"bucket": "b"}))
    perform(performed(Graph(steps), scope, attempt), edge)
    return edge, scope


def edge(**responses: Answer | list[Answer]) -> ScriptedEdge:
    defaults: dict[str, Any] = {
        "CreateTrainingJob": {},
        "StopTrainingJob": {},
        "CreateModel": {},
        "DeleteModel": {},
    }
    return ScriptedEdge(answers({**defaults, **responses}))


def test_an_outage_is_waited_through_by_a_step_that_only_asks() -> None:
    asking = job(until={"stop": None})
    assert asking.until is not None
    asking = replace(asking, operation=asking.until.poll, adopt=None, retry=Retry())
    outage: list[Answer] = [THROTTLED] * (3 * asking.retry.attempts)
    aws, scope = run(asking, edge=edge(DescribeTrainingJob=[*outage, RUNS, DONE]))
    assert scope.result("train.job", "model") == "s3://b/model"
    assert len(aws.operations) == len(outage) + 2
    with pytest.raises(RunError, match="did not end within 3600 s") as late:
        run(asking, edge=edge(DescribeTrainingJob=THROTTLED))
    assert late.value.error == "TimedOut"


def test_a_job_is_polled_until_it_has_ended() -> None:
    aws, scope = run(job(), edge=edge(DescribeTrainingJob=[RUNS, RUNS, DONE]))
    assert aws.operations == ["CreateTrainingJob", *["DescribeTrainingJob"] * 3]
    assert scope.results["train.job"] == {"model": "s3://b/model"}
    assert aws.now == 60


def test_a_job_that_exists_is_followed_and_not_paid_again() -> None:
    aws, scope = run(job(), edge=edge(CreateTrainingJob=EXISTS, DescribeTrainingJob=DONE))
    assert aws.operations == ["CreateTrainingJob", "DescribeTrainingJob"]
    assert scope.results["train.job"] == {"model": "s3://b/model"}


def test_a_failed_job_is_named_with_its_reason() -> None:
    with pytest.raises(RunError) as caught:
        run(job(), edge=edge(DescribeTrainingJob=BAD))
    assert caught.value.error == "JobFailed"
    assert caught.value.cause == "CreateTrainingJob train.job ended as Failed: AlgorithmError: nan"


def test_a_job_over_its_own_time_timed_out() -> None:
    over: Answer = {"Status": "Failed", "Limit": "MaxRuntimeExceeded", "Reason": "r"}
    limited = job(until={"limit": ("Limit",), "limits": {"MaxRuntimeExceeded": "max_run is 9"}})
    with pytest.raises(RunError) as caught:
        run(limited, edge=edge(DescribeTrainingJob=over))
    assert caught.value.error == "TimedOut"
    assert (
        caught.value.cause
        == "CreateTrainingJob train.job ended as Failed: MaxRuntimeExceeded (max_run is 9)"
    )


def test_a_job_that_takes_too_long_is_stopped() -> None:
    aws = edge(DescribeTrainingJob=RUNS)
    with pytest.raises(RunError) as caught:
        run(job(), edge=aws)
    assert (caught.value.error, aws.operations[-1]) == ("TimedOut", "StopTrainingJob")
    assert caught.value.cause.endswith("did not end within 3600 s; it was told to stop")
    assert aws.now == 3600


def test_an_error_that_passes_is_tried_again_with_growing_pauses() -> None:
    twice: list[Answer] = [THROTTLED, THROTTLED, {}]
    aws, _ = run(call("m"), edge=edge(CreateModel=twice))
    assert aws.operations == ["CreateModel"] * 3
    assert aws.now == 2 + 4


def test_a_timed_request_tells_the_milliseconds_until_its_answer() -> None:
    timed = replace(call("model"), outputs={"n": Output(("N",))}, timed=True)
    missing = ErrorPattern("ResourceInUse")
    recovered = replace(timed, name="other", recoveries=(Recovery(missing, {"n": 0}),))
    responses: list[Answer] = [THROTTLED, {"N": 1}, EXISTS]
    aws, scope = run(timed, recovered, edge=edge(CreateModel=responses))
    assert scope.results["model"] == {"n": 1, LATENCY: round(1000 * aws.now)}
    assert aws.now > 0
    assert scope.results["other"] == {"n": 0, LATENCY: 0}


def test_trouble_that_lasts_may_be_tried_again_as_a_whole() -> None:
    with pytest.raises(Trouble):
        run(call("m"), edge=edge(CreateModel=THROTTLED))


def test_a_requirement_fails_with_its_name_and_cause() -> None:
    unmet = Require(name="r", condition=Compare("eq", 1, 2), error="Unmet", cause="one is not two")
    aws = edge()
    with pytest.raises(RunError) as caught:
        run(unmet, call("m", after=("r",)), edge=aws)
    assert (caught.value.error, caught.value.cause) == ("Unmet", "one is not two")
    assert aws.sent == []
    assert aws.broke == {"r": ("Unmet", "one is not two")}


def test_a_loop_collects_in_order_and_one_failure_stops_no_other() -> None:
    body = Graph((Call(name="each.m", operation=Operation("s", "CreateModel", {"N": Item()})),))
    loop = ForEach(name="each", items=[1, 2, 3], body=body, collect=Item(), max_concurrency=2)  # type: ignore[arg-type]  # any tree can be collected
    aws, scope = run(loop, edge=edge())
    assert scope.results["each"] == {"items": [1, 2, 3]}

    def script(request: Any) -> Answer:
        refused = request.parameters["N"] == 1
        return ServiceError("ValidationException", "no") if refused else {}

    aws = ScriptedEdge(script)
    with pytest.raises(RunError):
        run(loop, edge=aws)
    assert len(aws.sent) == 3


def test_what_runs_side_by_side_ends_before_the_failure_is_told() -> None:
    bad = Fail(name="a", error="Bad", cause="c")
    both = Parallel(name="p", branches=(Graph((bad,)), Graph((call("m"),))))
    aws = edge()
    with pytest.raises(RunError) as caught:
        run(both, edge=aws)
    assert caught.value.error == "Bad"
    assert aws.operations == ["CreateModel"]


def guarded(*body: Step) -> Guarded:
    acquire = call("g.acquire", outputs={"id": Output(("Id",))})
    release = Call(
        name="g.release",
        operation=Operation("s", "DeleteModel", {"Id": Result("g.acquire", "id")}),
    )
    return Guarded(name="g", acquire=acquire, body=Graph(body), cleanup=Graph((release,)))


def test_a_guard_releases_after_a_failure_and_does_not_hide_it() -> None:
    aws = edge(CreateModel={"Id": "1"}, DescribeTrainingJob=BAD)
    with pytest.raises(RunError) as caught:
        run(guarded(job()), edge=aws)
    assert caught.value.error == "JobFailed"
    assert aws.sent[-1].operation == "DeleteModel"
    assert aws.sent[-1].parameters == {"Id": "1"}


@pytest.mark.parametrize("last", ["CreateTrainingJob", "DescribeTrainingJob"])
def test_an_abort_stops_the_job_and_releases(last: str) -> None:
    aws = edge(CreateModel={"Id": "1"}, DescribeTrainingJob=RUNS)
    aws.abort_at = last
    with pytest.raises(Aborted):
        run(guarded(job()), call("later", after=("g",)), edge=aws)
    assert aws.operations[-2:] == ["StopTrainingJob", "DeleteModel"]
    assert aws.operations.count("CreateModel") == 1


def test_a_clean_up_is_waited_for_after_an_abort() -> None:
    guard = guarded(job())
    deletion = Call(
        name="g.release",
        operation=Operation("s", "DeleteModel", {"Id": Result("g.acquire", "id")}),
        until=Until(
            poll=Operation("s", "DescribeModel", {}),
            status=("Status",),
            success=frozenset(["Deleted"]),
            failure=frozenset(),
        ),
    )
    left: list[Answer] = [{"Status": "Deleting"}, {"Status": "Deleting"}, {"Status": "Deleted"}]
    aws = edge(CreateModel={"Id": "1"}, DescribeTrainingJob=RUNS, DescribeModel=left)
    aws.abort_at = "DescribeTrainingJob"
    with pytest.raises(Aborted):
        run(replace(guard, cleanup=Graph((deletion,))), edge=aws)
    assert aws.operations[-4:] == ["DeleteModel", *["DescribeModel"] * 3]
    assert "g.release" in aws.finished


def test_an_abort_releases_what_a_lost_response_may_have_acquired() -> None:
    lost = ServiceError("ConnectionClosedError", "no response", passing=True, lasting=False)
    acquired: list[Answer] = [lost, {"Id": "1"}]
    aws = edge(CreateModel=acquired)
    aws.abort_at = "CreateModel"
    with pytest.raises(Aborted):
        run(guarded(job()), edge=aws)
    assert aws.operations == ["CreateModel", "CreateModel", "DeleteModel"]
    assert aws.sent[-1].parameters == {"Id": "1"}


def test_an_abort_releases_what_a_dead_process_may_have_acquired() -> None:
    aws = edge(CreateModel={"Id": "1"})
    aws.aborting = True
    with pytest.raises(Aborted):
        run(guarded(job()), edge=aws)
    assert aws.operations == []
    # Another process was killed between its request and the time it could keep the response.
    with pytest.raises(Aborted):
        run(guarded(job()), edge=aws)
    assert aws.operations == ["CreateModel", "DeleteModel"]
    assert aws.sent[-1].parameters == {"Id": "1"}


def test_what_was_finished_before_is_not_done_again() -> None:
    aws = edge(DescribeTrainingJob=DONE)
    aws.kept = {"train.job": {"model": "s3://b/old"}}
    read = call("m", outputs={"id": Output(("Id",))}, after=("train.job",))
    aws.script = answers({"CreateModel": {"Id": "7"}})
    _, scope = run(job(), read, edge=aws)
    assert aws.operations == ["CreateModel"]
    assert scope.results["train.job"] == {"model": "s3://b/old"}


def report(body: str) -> dict[str, Any]:
    return {"Body": body}


def test_what_another_process_has_read_before_counts() -> None:
    read = Read(name="r", uri="s3://b/k", outputs={"n": Output(("n",))})
    aws = edge(GetObject=report('{"n": 2}'))
    aws.decided = {"r": {"n": 1}}
    _, scope = run(read, edge=aws)
    assert scope.results["r"] == {"n": 1}


def test_outputs_that_cannot_be_kept_fail_the_step_and_the_guard_releases() -> None:
    read = Read(name="r", uri="s3://b/k", outputs={"n": Output(("n",))})
    aws = edge(CreateModel={"Id": "1"}, GetObject=report('{"n": 2}'))
    aws.decided = {"r": ServiceError("AccessDenied", "no PutObject")}
    with pytest.raises(Trouble, match="AccessDenied: no PutObject"):
        run(guarded(read), edge=aws)
    assert aws.operations[-1] == "DeleteModel"
    assert aws.broke["r"] == ("AccessDenied", "no PutObject")


def test_a_choice_takes_one_branch_by_what_was_read() -> None:
    read = Read(name="r", uri="s3://b/k", outputs={"good": Output(("good",))})
    chosen = Choose(
        name="c",
        condition=Compare("eq", Result("r", "good"), True),
        then=Graph((call("yes"),)),
        otherwise=Graph((call("no"),)),
    )
    aws = edge(GetObject=report('{"good": true}'))
    run(read, chosen, edge=aws)
    assert [request.parameters.get("N") for request in aws.sent] == [None, "yes"]


def test_a_pause_lasts_as_long_as_it_says() -> None:
    aws, _ = run(Wait(name="w", seconds=90), edge=edge())
    assert aws.now == 90


def test_an_expression_without_a_value_fails_the_step() -> None:
    wrong = Require(
        name="r", condition=Compare("gt", apply(Function.COUNT, "x"), 1), error="E", cause="c"
    )
    with pytest.raises(RunError) as caught:
        run(wrong, edge=edge())
    assert caught.value.error == "ExpressionError"


def listing(most: int) -> Call:
    """A listing of many pages: its objects counted, and a fingerprint of all of them."""
    rows, so_far = Result("s.list", "rows"), Result("s.list", "fingerprint")
    counts: Any = [{"n": Result("s.list", "count")}, {"n": apply(Function.COUNT, rows)}]
    folds = {
        "fingerprint": Fold(start="", then=apply(Function.FINGERPRINT, so_far, rows)),
        "count": Fold(start=0, then=apply(Function.SUM, counts, "n")),
        "more": Fold(start=True, then=Result("s.list", "truncated")),
    }
    return Call(
        name="s.list",
        operation=Operation("s3", "ListObjectsV2", {"Bucket": "b", "MaxKeys": 2}),
        outputs={"rows": Output(("Contents",), default=()), "truncated": Output(("IsTruncated",))},
        pages=Pages(token=("Next",), field="ContinuationToken", most=most, folds=folds),
    )


def page(*keys: str, token: str | None = None) -> Answer:
    rows: Json = [{"Key": key, "ETag": "x", "Size": 1} for key in keys]
    return {
        "Contents": rows,
        "IsTruncated": token is not None,
        **({} if token is None else {"Next": token}),
    }


def test_a_listing_is_asked_for_page_by_page() -> None:
    pages = [page("a", "b", token="1"), THROTTLED, page("c", "d", token="2"), page("e")]
    aws, scope = run(listing(3), edge=edge(ListObjectsV2=list(pages)))
    tokens = [request.parameters.get("ContinuationToken") for request in aws.sent]
    assert tokens == [None, "1", "1", "2"]
    lines = ["1 x a\n1 x b\n", "1 x c\n1 x d\n", "1 x e\n"]
    expected = ""
    for line in lines:
        expected = hashlib.sha256((expected + line).encode()).hexdigest()
    assert scope.results["s.list"] == {"fingerprint": expected, "count": 5, "more": False}
    _, cut = run(listing(2), edge=edge(ListObjectsV2=list(pages)))
    assert cut.results["s.list"]["count"] == 4
    assert cut.results["s.list"]["more"] is True
    denied = edge(ListObjectsV2=[page("a", token="1"), ServiceError("AccessDenied", "no")])
    with pytest.raises(RunError, match=r"ListObjectsV2 s\.list of s3://b: no"):
        run(listing(2), edge=denied)
