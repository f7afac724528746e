"""Definitions do what the steps mean, run by the embedded AWS."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from orchestration.backends import stepfunctions
from orchestration.execution import wording
from orchestration.execution.parameters import problems
from orchestration.expressions import Compare, Item, Result, Tree, field, join, parameter, run_id
from orchestration.graph import (
    LATENCY,
    Call,
    Choose,
    Fail,
    Failure,
    Graph,
    Operation,
    Output,
    Parallel,
    ParameterSpec,
    Until,
    Wait,
    Workflow,
)
from orchestration.local import EmbeddedAws, Fault
from orchestration.stages.unchanged import paged
from tests.backends.workflows import (
    BUCKET,
    TOKEN,
    deletion,
    endpoint_status,
    failing,
    file_system,
    guarded,
    loop,
    model,
    put,
    read,
    workflow,
)
from tests.local.conftest import GROUP, ROLE, SUBNET, tar_gz, training_request, wait

pytestmark = pytest.mark.slow  # starts the embedded AWS


@dataclass(frozen=True)
class Ended:
    """An execution that is over."""

    succeeded: bool
    output: Any
    error: str
    cause: str
    calls: list[str]
    """``operation key`` of each call, in order."""
    states: list[str]


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.002) as embedded:
        embedded.client("s3").create_bucket(Bucket=BUCKET)
        embedded.provide(roles=[ROLE], subnets=[SUBNET], security_groups=[GROUP])
        yield embedded


Execute = Callable[..., Ended]


@pytest.fixture
def execute(aws: EmbeddedAws) -> Execute:
    def ended(made: Workflow, given: Any = None) -> Ended:
        before = len(aws.calls())
        states = aws.client("stepfunctions")
        machine = states.create_state_machine(
            name=f"m-{uuid.uuid4().hex[:12]}",
            definition=stepfunctions.dumps(stepfunctions.render(made)),
            roleArn=ROLE,
        )["stateMachineArn"]
        arn = states.start_execution(stateMachineArn=machine, input=json.dumps(given or {}))[
            "executionArn"
        ]
        over = wait(
            lambda: states.describe_execution(executionArn=arn),
            lambda run: run["status"] != "RUNNING",
        )
        history = states.get_execution_history(executionArn=arn, maxResults=1000)["events"]
        return Ended(
            succeeded=over["status"] == "SUCCEEDED",
            output=json.loads(over.get("output", "null")),
            error=over.get("error", ""),
            cause=over.get("cause", ""),
            calls=[_told(c) for c in aws.calls()[before:] if c.origin == "step-functions"],
            states=[
                e["stateEnteredEventDetails"]["name"]
                for e in history
                if "stateEnteredEventDetails" in e
            ],
        )

    return ended


def _told(call: Any) -> str:
    return f"{call.operation} {call.request.get('Key', '')}".strip()


def store(aws: EmbeddedAws, key: str, value: Any) -> None:
    body = value if isinstance(value, str) else json.dumps(value)
    aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)


def stored(aws: EmbeddedAws, key: str) -> str:
    body: bytes = aws.client("s3").get_object(Bucket=BUCKET, Key=key)["Body"].read()
    value: str = json.loads(body)["value"]
    return value


# --- input and output ----------------------------------------------------------------------------

BOTH = (ParameterSpec(name="bucket"), ParameterSpec(name="epochs", type="number", default=3))


LISTS = tuple(ParameterSpec(name=name, type="array") for name in ("one", "other"))


@pytest.mark.parametrize(
    ("one", "numbers"),
    [
        ([[1, 2]], "1"),
        (["a", None, 1, [], True, {"b": "c", "d": 1.5, "e": False}, {}], "2, 4"),
        ([{"a": [1]}, {"b": {"c": 1}}, {"d": None}], "1, 2, 3"),
        ([{"a": 1}, [["b"]]], "2"),
    ],
)
def test_elements_that_no_list_has_are_told_by_parameter_and_number(
    execute: Execute, one: list[Any], numbers: str
) -> None:
    given = {"one": one, "other": ["a", {"b": 1}]}
    [told] = problems(LISTS, given)
    assert told.startswith("parameter one: expected a list of texts, numbers")
    assert told.endswith(f"its element {numbers} is none")
    ended = execute(workflow(put("never"), parameters=LISTS), given)
    assert (ended.error, ended.cause, ended.calls) == ("InvalidInput", told, [])


def test_lists_of_scalars_and_of_objects_of_scalars_are_taken(execute: Execute) -> None:
    given = {"one": [], "other": ["a", 1, False, {"b": "c", "d": 1}]}
    assert problems(LISTS, given) == []
    ended = execute(workflow(parameters=LISTS, outputs={"o": parameter("other")}), given)
    assert ended.output == {"o": given["other"]}


@pytest.mark.parametrize(
    ("given", "wrong"),
    [
        ({}, ["parameter bucket is missing"]),
        (
            {"bucket": 1, "epochs": "3"},
            ["parameter bucket is not of type string", "epochs is not of type number"],
        ),
        (
            {"bucket": None, "x": 1, "y": 2},
            ["bucket is missing", "no parameter x", "no parameter y"],
        ),
        (["a"], ["the input is not an object", "bucket is missing"]),
    ],
)
def test_a_wrong_input_fails_the_run_first_of_all_and_says_all(
    execute: Execute, given: Any, wrong: list[str]
) -> None:
    ended = execute(workflow(put("never"), parameters=BOTH), given)
    assert ended.error == "InvalidInput"
    assert all(part in ended.cause for part in wrong), ended.cause
    if isinstance(given, dict):
        assert ended.cause == wording.SEPARATOR.join(problems(BOTH, given))
    assert ended.calls == []


def test_parameters_have_defaults_and_outputs_come_out(execute: Execute) -> None:
    outputs: dict[str, Tree] = {"e": parameter("epochs"), "b": [join(parameter("bucket"), "!")]}
    ended = execute(workflow(parameters=BOTH, outputs=outputs), {"bucket": "it's"})
    assert ended.output == {"e": 3, "b": ["it's!"]}
    ended = execute(workflow(parameters=BOTH, outputs=outputs), {"bucket": "b", "epochs": None})
    assert ended.output == {"e": 3, "b": ["b!"]}


def test_the_run_has_an_identity_of_12_digits(execute: Execute) -> None:
    made = workflow(outputs={"run": run_id()})
    first, second = execute(made).output["run"], execute(made).output["run"]
    assert len(first) == len(second) == 12
    assert first != second


@pytest.mark.parametrize(
    "text",
    ["{% 1 %}", "$.x", "{{ ds }}", "States.Format('x')", 'it\'s "so"\\n\n\t', "é 😀 \u2028", "%}"],
)
def test_what_a_user_writes_arrives_as_it_is(execute: Execute, aws: EmbeddedAws, text: str) -> None:
    ended = execute(workflow(put("hostile", text), outputs={"k.$": text, "t": join("<", text)}))
    assert ended.output == {"k.$": text, "t": f"<{text}"}
    assert stored(aws, "hostile") == text


# --- responses -----------------------------------------------------------------------------------


def report(execute: Execute, aws: EmbeddedAws, document: Any, **outputs: Output) -> Ended:
    store(aws, "report.json", document)
    step = read("report", "report.json", outputs)
    return execute(workflow(step, outputs={name: Result("report", name) for name in outputs}))


def test_outputs_are_taken_by_path_with_defaults_and_columns(
    execute: Execute, aws: EmbeddedAws
) -> None:
    document = {
        "a b": {"in": [{"x": 1.5, "y": 2}]},
        "empty": [],
        "one": [{"x": 1, "y": [2]}],
        "null": None,
    }
    ended = report(
        execute,
        aws,
        document,
        number=Output(("a b", "in", 0, "x"), kind="number"),
        none=Output(("empty",), kind="list", columns=("x",)),
        one=Output(("one",), kind="list", columns=("y", "z")),
        elsewhere=Output(("nowhere",), default={"d": ["{% %}"]}),
        absent=Output(("nowhere", 0, "x"), kind="number", default=None),
        null=Output(("null",), default=1),
    )
    assert ended.output == {
        "number": 1.5,
        "none": [],
        "one": [{"y": [2]}],
        "elsewhere": {"d": ["{% %}"]},
        "absent": None,
        "null": None,
    }


@pytest.mark.parametrize(
    ("output", "error", "said"),
    [
        (Output(("metrics", "loss")), "MissingOutput", "has no metrics.loss"),
        (Output(("text",), kind="number"), "MetricNotNumber", "has no number at text"),
        (Output(("text",), kind="list", default=[]), "WrongOutput", "has no list at text"),
        (
            Output(("rows",), kind="list", columns=("x",), texts=("x",)),
            "WrongOutput",
            "has no list at rows",
        ),
    ],
)
def test_an_output_that_is_missing_or_wrong_fails_the_step(
    execute: Execute, aws: EmbeddedAws, output: Output, error: str, said: str
) -> None:
    ended = report(execute, aws, {"text": "x", "rows": [{"x": 1}]}, value=output)
    assert ended.error == error
    assert said in ended.cause


def test_a_body_that_is_not_json_says_so(execute: Execute, aws: EmbeddedAws) -> None:
    aws.client("s3").put_object(Bucket=BUCKET, Key="answer", Body=b"a text")
    operation = Operation("s3", "GetObject", {"Bucket": BUCKET, "Key": "answer"})
    answer = Output(("Body",), parse=True)
    asked = Call(name="ask", operation=operation, outputs={"answer": answer})
    told = Failure(error="Told", remedy="ask again")
    for step, error, cause in (
        (asked, "WrongOutput", "Body of ask is not JSON"),
        (replace(asked, failure=told), "Told", "Body of ask is not JSON; ask again"),
    ):
        ended = execute(workflow(step))
        assert (ended.error, ended.cause) == (error, cause)


def test_a_timed_call_adds_milliseconds_to_its_outputs(execute: Execute, aws: EmbeddedAws) -> None:
    store(aws, "timed.json", {"n": 1})
    operation = Operation("s3", "GetObject", {"Bucket": BUCKET, "Key": "timed.json"})
    body = Output(("Body",), parse=True, inside=("n",))
    asked = Call(name="ask", operation=operation, outputs={"n": body}, timed=True)
    bare = Call(name="bare", operation=operation, timed=True, after=("ask",))
    outputs = {name: Result(name, LATENCY) for name in ("ask", "bare")}
    ended = execute(workflow(asked, bare, outputs={**outputs, "n": Result("ask", "n")}))
    assert ended.output["n"] == 1
    assert all(0 <= ended.output[name] < 60_000 for name in outputs)
    assert ended.states.index("ask-Asked") + 2 == ended.states.index("ask-Answered")


# --- side by side --------------------------------------------------------------------------------


def test_branches_run_to_their_end_and_the_first_failure_in_order_fails_the_run(
    execute: Execute,
) -> None:
    made = workflow(
        put("left"),
        failing("first", after=("left",)),
        failing("second"),
        put("right"),
        put("late", after=("right",)),
        put("never", after=("first",)),
    )
    ended = execute(made)
    assert ended.error == "NoSuchKey"
    assert {"PutObject left", "PutObject right", "PutObject late"} <= set(ended.calls)
    assert "PutObject never" not in ended.calls
    assert ended.states[-2:] == ["left-Together-CheckErrors", "Failed"]


def test_branches_that_all_fail_leave_no_results_and_the_first_error(execute: Execute) -> None:
    branches = tuple(Graph((put(n), failing(f"{n}_fails", after=(n,)))) for n in "ab")
    ended = execute(
        workflow(Parallel(name="both", branches=branches), put("c", Result("a", "etag")))
    )
    assert ended.error == "NoSuchKey"


def test_results_leave_branches_however_deep(execute: Execute) -> None:
    a, b, c = (Result(name, "etag") for name in "abc")
    made = workflow(
        put("a"),
        put("b"),
        put("joined", join(a, b), after=("a", "b")),
        put("d"),
        Parallel(name="both", branches=(Graph((put("c"),)), Graph((put("e"), put("f"))))),
        put("end", join(c, Result("joined", "etag"), Result("f", "etag")), after=("d",)),
        outputs={"list": [a, b, c], "f": Result("f", "etag"), "end": Result("end", "etag")},
    )
    ended = execute(made)
    assert ended.succeeded, ended.cause
    assert len(set(ended.output["list"])) == 1
    order = ended.calls.index
    assert max(order("PutObject a"), order("PutObject b")) < order("PutObject joined")


# --- loops ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [[], ["a"], ["a", "b", "c"]])
def test_a_loop_collects_in_order(execute: Execute, keys: list[str]) -> None:
    made = workflow(
        loop("each", [{"key": key} for key in keys]), outputs={"items": Result("each", "items")}
    )
    ended = execute(made)
    assert [item["key"] for item in ended.output["items"]] == keys
    assert all(len(item["etag"]) > 0 for item in ended.output["items"])


def test_a_loop_runs_all_elements_even_if_one_fails(execute: Execute) -> None:
    keyed = Operation("s3", "GetObject", {"Bucket": BUCKET, "Key": field(Item(), "need")})
    needs = Call(name="each.need", operation=keyed, after=("each.put",))
    rows = [{"key": key, "need": need} for key, need in (("a", "no"), ("b", "each/b"), ("c", "x"))]
    ended = execute(workflow(loop("each", rows, needs), put("never", after=("each",))))
    assert ended.error == "NoSuchKey"
    assert {f"PutObject each/{key}" for key in "abc"} <= set(ended.calls)
    assert "PutObject never" not in ended.calls


def test_a_loop_over_a_loop_reads_its_rows(execute: Execute) -> None:
    made = workflow(
        loop("each", [{"key": "a"}]),
        loop("again", Result("each", "items")),
        outputs={"items": Result("again", "items")},
    )
    assert [item["key"] for item in execute(made).output["items"]] == ["a"]


# --- choices, pauses, ends -----------------------------------------------------------------------


@pytest.mark.parametrize(("bucket", "calls"), [("x", ["PutObject then"]), ("y", [])])
def test_a_choice_takes_one_way_and_joins(execute: Execute, bucket: str, calls: list[str]) -> None:
    gate = Choose(
        name="gate",
        condition=Compare("eq", parameter("bucket"), "x"),
        then=Graph((put("then"),)),
        otherwise=Graph(),
    )
    pause = Wait(name="pause", seconds=0.5, after=("gate",))
    made = workflow(gate, pause, put("end", after=("pause",)), parameters=BOTH)
    assert execute(made, {"bucket": bucket}).calls == [*calls, "PutObject end"]


def test_a_fail_ends_the_run_with_its_name_and_cause(execute: Execute) -> None:
    stop = Fail(name="stop", error="{% Gate %}", cause=join("no: ", parameter("bucket")))
    ended = execute(workflow(stop, put("never", after=("stop",)), parameters=BOTH), {"bucket": "b"})
    assert (ended.error, ended.cause, ended.calls) == ("{% Gate %}", "no: b", [])


# --- answers and errors that pass ----------------------------------------------------------------


def test_an_error_that_is_an_answer_is_asked_for_once(execute: Execute) -> None:
    status = endpoint_status("look", "nobody")
    ended = execute(workflow(status, outputs={"status": Result("look", "status")}))
    assert ended.output == {"status": "Absent {% 1 %}"}
    assert ended.calls == ["DescribeEndpoint"]


def throttled(operation: str, times: int) -> Fault:
    return Fault("sagemaker", operation, "ThrottlingException", "Rate exceeded", times=times)


def test_throttling_is_told_from_an_answer_of_the_same_name(
    execute: Execute, aws: EmbeddedAws
) -> None:
    aws.inject(throttled("DescribeEndpoint", 2))
    status = endpoint_status("look", "nobody")
    ended = execute(workflow(status, outputs={"status": Result("look", "status")}))
    assert ended.output == {"status": "Absent {% 1 %}"}
    assert ended.calls == ["DescribeEndpoint"] * 3


def test_throttling_is_not_borne_for_ever(execute: Execute, aws: EmbeddedAws) -> None:
    aws.inject(throttled("DescribeEndpoint", 5))
    ended = execute(workflow(endpoint_status("look", "nobody")))
    assert "Rate exceeded" in ended.cause
    assert ended.calls == ["DescribeEndpoint"] * 5


def test_throttling_of_a_plain_call_is_retried(execute: Execute, aws: EmbeddedAws) -> None:
    aws.inject(throttled("ListModels", 2))
    call = Call(name="list", operation=Operation("sagemaker", "ListModels", {}))
    ended = execute(workflow(call))
    assert ended.succeeded
    assert ended.calls == ["ListModels"] * 3


def test_what_a_lost_response_made_is_adopted(execute: Execute, aws: EmbeddedAws) -> None:
    aws.inject(
        Fault("sagemaker", "CreateModel", "ThrottlingException", "Rate exceeded", after_effect=True)
    )
    name = f"model-{uuid.uuid4().hex[:8]}"
    ended = execute(workflow(model("model", name), put("end", after=("model",))))
    assert ended.succeeded, ended.cause
    assert ended.calls == ["CreateModel", "CreateModel", "PutObject end"]


def test_another_error_fails_the_step_unchanged(execute: Execute, aws: EmbeddedAws) -> None:
    aws.inject(Fault("sagemaker", "CreateModel", "ResourceLimitExceeded", "too many models"))
    ended = execute(workflow(model("model", "m")))
    assert ended.error == "ResourceLimitExceeded"
    assert "too many models" in ended.cause
    assert ended.calls == ["CreateModel"]


# --- waiting for what takes long -----------------------------------------------------------------


def fresh() -> dict[str, str]:
    return {"token": uuid.uuid4().hex[:12]}


def test_what_was_started_is_followed_to_its_end(execute: Execute) -> None:
    made = workflow(
        file_system("share"),
        deletion("delete", Result("share", "identifier")),
        put("end", Result("share", "mount_name"), after=("delete",)),
        parameters=(TOKEN,),
        outputs={name: Result("share", name) for name in ("identifier", "mount_name")},
    )
    ended = execute(made, fresh())
    assert ended.succeeded, ended.cause
    assert ended.output["identifier"].startswith("fs-")
    assert ended.calls[0] == "CreateFileSystem"
    assert ended.calls[-1] == "PutObject end"
    assert {"share-Wait", "delete-Status"} <= set(ended.states)


def test_what_takes_too_long_is_stopped(execute: Execute) -> None:
    stop = Operation("fsx", "DeleteFileSystem", {"FileSystemId": Result("share", "identifier")})
    late = file_system("share", success=frozenset(["NEVER"]), stop=stop, interval_s=2, timeout_s=5)
    ended = execute(workflow(late, parameters=(TOKEN,)), fresh())
    assert ended.error == "TimedOut"
    assert "CreateFileSystem share did not end within 5 s; it was told to stop" in ended.cause
    assert ended.calls.count("DescribeFileSystems") == 4
    assert ended.calls[-1] == "DeleteFileSystem"


def test_what_failed_fails_the_step(execute: Execute) -> None:
    broken = file_system("share", failure=frozenset(["AVAILABLE"]), success=frozenset())
    ended = execute(workflow(broken, parameters=(TOKEN,)), fresh())
    assert (ended.error, ended.cause) == ("JobFailed", "CreateFileSystem share ended as AVAILABLE")


def training(name: str, **request: Any) -> Call:
    job = join(f"{name}-", parameter("token"))
    described = {"TrainingJobName": job}
    return Call(
        name=name,
        operation=Operation(
            "sagemaker",
            "CreateTrainingJob",
            {**training_request("", "s3://none"), "TrainingJobName": job, **request},
        ),
        until=Until(
            poll=Operation("sagemaker", "DescribeTrainingJob", described),
            status=("TrainingJobStatus",),
            success=frozenset(["Completed"]),
            failure=frozenset(["Failed", "Stopped"]),
            reason=("FailureReason",),
            limit=("SecondaryStatus",),
            limits={"MaxRuntimeExceeded": "it has 1 s", "MaxWaitTimeExceeded": "it has 2 s"},
            stop=Operation("sagemaker", "StopTrainingJob", described),
            interval_s=5,
        ),
    )


POLLED = pytest.mark.parametrize(
    "request_", [{}, {"RemoteDebugConfig": {"EnableRemoteDebug": True}}], ids=["sync", "polled"]
)


@POLLED
def test_a_job_over_its_time_timed_out_polled_or_not(
    execute: Execute, aws: EmbeddedAws, request_: dict[str, Any]
) -> None:
    script = tar_gz({"train.py": "import time; time.sleep(60)"})
    aws.client("s3").put_object(Bucket=BUCKET, Key="code/slow.tar.gz", Body=script)
    slow = {
        "HyperParameters": {
            "sagemaker_program": "train.py",
            "sagemaker_submit_directory": f"s3://{BUCKET}/code/slow.tar.gz",
        },
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/output"},
        "StoppingCondition": {"MaxRuntimeInSeconds": 1},
        **request_,
    }
    ended = execute(workflow(training("late", **slow), parameters=(TOKEN,)), fresh())
    assert ended.error == "TimedOut", ended.cause
    assert ended.cause.startswith("CreateTrainingJob late")
    assert ended.cause.endswith(" ended as Stopped: MaxRuntimeExceeded (it has 1 s)")


@POLLED
def test_a_job_that_failed_says_the_same_polled_or_not(
    execute: Execute, aws: EmbeddedAws, request_: dict[str, Any]
) -> None:
    aws.inject(Fault.job("train-", reason="AlgorithmError: nan"))
    ended = execute(workflow(training("train", **request_), parameters=(TOKEN,)), fresh())
    assert ended.error == "JobFailed"
    assert ended.cause.startswith("CreateTrainingJob train")
    assert ended.cause.endswith(" ended as Failed: AlgorithmError: nan")
    assert ended.calls[0] == "CreateTrainingJob"
    assert ended.calls.count("CreateTrainingJob") == 1


# --- what is guarded -----------------------------------------------------------------------------


def test_what_was_acquired_is_released_and_results_stay(execute: Execute) -> None:
    made = workflow(
        guarded("share", Graph((put("work", Result("share.create_ready", "mount_name")),))),
        put("end", Result("work", "etag"), after=("share",)),
        parameters=(TOKEN,),
    )
    ended = execute(made, fresh())
    assert ended.succeeded, ended.cause
    order = ended.calls.index
    assert order("PutObject work") < order("DeleteFileSystem") < order("PutObject end")


def test_it_is_released_after_a_failure_which_stays_the_runs(execute: Execute) -> None:
    made = workflow(
        guarded("share", Graph((failing("work"),))),
        put("never", after=("share",)),
        parameters=(TOKEN,),
    )
    ended = execute(made, fresh())
    assert ended.error == "NoSuchKey"
    assert "DeleteFileSystem" in ended.calls
    assert "PutObject never" not in ended.calls


@pytest.mark.parametrize(
    ("work", "error"),
    [(put("work"), "AccessDenied"), (failing("work"), "NoSuchKey")],
    ids=["after success", "after a failure"],
)
def test_a_failed_release_fails_the_run_and_hides_no_failure(
    execute: Execute, aws: EmbeddedAws, work: Call, error: str
) -> None:
    aws.inject(Fault("fsx", "DeleteFileSystem", "AccessDenied", "AccessDenied"))
    guard = guarded("share", Graph((work,)))
    (release,) = guard.cleanup.steps
    assert isinstance(release, Call)
    once = replace(release, retry=replace(release.retry, attempts=1))
    made = workflow(replace(guard, cleanup=Graph((once,))), parameters=(TOKEN,))
    ended = execute(made, fresh())
    assert error in f"{ended.error} {ended.cause}"


def test_nothing_runs_where_nothing_was_acquired(execute: Execute, aws: EmbeddedAws) -> None:
    aws.inject(Fault("fsx", "CreateFileSystem", "ServiceLimitExceeded", "too many"))
    made = workflow(guarded("share", Graph((put("work"),))), parameters=(TOKEN,))
    ended = execute(made, fresh())
    assert ended.error == "ServiceLimitExceeded"
    assert ended.calls == ["CreateFileSystem"]


@pytest.mark.parametrize(("most", "count", "more"), [(3, 5, False), (2, 4, True)])
def test_a_listing_is_asked_for_page_by_page(
    aws: EmbeddedAws, execute: Execute, most: int, count: int, more: bool
) -> None:
    for number in range(5):
        store(aws, f"pages {most}/{number}", number)
    whole = paged("s.pages", f"s3://{BUCKET}/pages {most}", most=most)
    request = {**whole.operation.request, "MaxKeys": 2}
    step = replace(whole, operation=replace(whole.operation, request=request))
    names = ("fingerprint", "count", "bytes", "more")
    outputs: dict[str, Tree] = {name: Result("s.pages", name) for name in names}
    ended = execute(workflow(step, outputs=outputs))
    assert ended.calls == ["ListObjectsV2"] * most
    text = ""
    listed = aws.client("s3").list_objects_v2(Bucket=BUCKET, Prefix=f"pages {most}/")["Contents"]
    for start in range(0, count, 2):
        rows = listed[start : start + 2]
        text += "".join(f"{row['Size']} {row['ETag']} {row['Key']}\n" for row in rows)
        text = hashlib.sha256(text.encode()).hexdigest()
    assert ended.output == {"fingerprint": text, "count": count, "bytes": count, "more": more}
