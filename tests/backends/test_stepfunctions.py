"""Definitions: sound for every kind of step, and refused where Step Functions can't do it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestration import Pipeline
from orchestration.backends import stepfunctions
from orchestration.backends.stepfunctions.limits import MAX_DEFINITION, exceeded
from orchestration.backends.stepfunctions.names import state, variable
from orchestration.backends.stepfunctions.naming import RESULTS
from orchestration.checks.rules import problems
from orchestration.errors import UnsupportedError
from orchestration.execution.sending import backoff
from orchestration.expressions import Compare, Function, Json, Result, Tree, join, parameter
from orchestration.graph import (
    Adopt,
    Alternative,
    Call,
    Choose,
    ErrorPattern,
    Fail,
    Fallback,
    Graph,
    Operation,
    Output,
    Parallel,
    ParameterSpec,
    Recovery,
    Retry,
    Step,
    Until,
    Wait,
    Workflow,
    all_steps,
    visible,
)
from tests.backends import definitions
from tests.backends.workflows import (
    TOKEN,
    endpoint_status,
    guarded,
    loop,
    model,
    put,
    read,
    workflow,
)
from tests.oracles import AslValidators

JOB: dict[str, Tree] = {
    "TrainingJobName": join("digits-", parameter("token")),
    "RoleArn": "arn:aws:iam::123456789012:role/pipeline",
    "AlgorithmSpecification": {"TrainingImage": "image", "TrainingInputMode": "File"},
    "OutputDataConfig": {"S3OutputPath": "s3://bucket/output"},
    "ResourceConfig": {"InstanceType": "ml.m5.large", "InstanceCount": 1, "VolumeSizeInGB": 10},
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
}


def training(name: str, **request: Any) -> Call:
    described: dict[str, Tree] = {"TrainingJobName": JOB["TrainingJobName"]}
    return Call(
        name=name,
        operation=Operation("sagemaker", "CreateTrainingJob", {**JOB, **request}),
        until=Until(
            poll=Operation("sagemaker", "DescribeTrainingJob", described),
            status=("TrainingJobStatus",),
            success=frozenset(["Completed"]),
            failure=frozenset(["Failed", "Stopped"]),
            reason=("FailureReason",),
            absent=(ErrorPattern("ValidationException", "not found"),),
            stop=Operation("sagemaker", "StopTrainingJob", described),
            outputs={"arn": Output(("TrainingJobArn",), kind="string")},
        ),
    )


def falling_back(name: str, **request: Any) -> Call:
    """A job with two alternatives, of which the last one can't be followed by ``.sync``."""

    def alternative(end: str, **more: Any) -> Alternative:
        job = {"TrainingJobName": join("digits-", parameter("token"), end)}
        return Alternative(
            label=join("machines", end),
            operation=Operation("sagemaker", "CreateTrainingJob", {**JOB, **job, **more}),
            poll=Operation("sagemaker", "DescribeTrainingJob", job),
            stop=Operation("sagemaker", "StopTrainingJob", job),
        )

    call = training(name, **request)
    return replace(
        call,
        adopt=Adopt(exists=ErrorPattern("ResourceInUse"), name_field="TrainingJobName"),
        recoveries=(Recovery(ErrorPattern("ValidationException", "free"), {"arn": ""}),),
        fallback=Fallback(
            label="4 x it's",
            alternatives=(alternative("-b"), alternative("-c", RemoteDebugConfig={})),
            reasons=("CapacityError", "it's full"),
            refusals=(
                ErrorPattern("ResourceLimitExceeded", "usage"),
                ErrorPattern("ValidationException", "it's none"),
            ),
        ),
    )


def waiting(name: str) -> Call:
    call = falling_back(name)
    assert call.fallback is not None
    return replace(call, fallback=replace(call.fallback, wait_s=86_400))


def everything() -> Workflow:
    """Every kind of step, nested."""
    inner = Graph((put("share.first"), loop("share.loop", [{"key": "a"}, {"key": "b"}])))
    stages: tuple[Step, ...] = (
        put("count"),
        training("train.job", RemoteDebugConfig={"EnableRemoteDebug": False}),
        training("plain.job"),
        falling_back("falls.back"),
        falling_back("falls.polled", StoppingCondition={"MaxPendingTimeInSeconds": 7200}),
        waiting("falls.waits"),
        guarded("share", inner, after=("count",)),
        Parallel(
            name="both",
            branches=(Graph((put("both.left"), put("both.right"))), Graph((put("both.other"),))),
        ),
        loop("each", Result("share.loop", "items")),
        Choose(
            name="gate",
            condition=Compare("eq", Result("both.left", "etag"), "x"),
            then=Graph((model("gate.model", "m"), endpoint_status("gate.status", "e"))),
            otherwise=Graph(
                (Fail(name="gate.stop", error="{% E %}", cause=join("no ", parameter("token"))),)
            ),
        ),
        Wait(name="pause", seconds=1.5, after=("gate", "both.other")),
        read(
            "report", "report.json", {"metric": Output(("a b", 0, "in"), kind="number", default=0)}
        ),
    )
    outputs: dict[str, Tree] = {
        "items": Result("each", "items"),
        "left": Result("both.left", "etag"),
        "x": ["{% %}"],
    }
    return workflow(*stages, outputs=outputs, parameters=(TOKEN,), description="Everything.")


def tangled(edges: dict[str, set[str]]) -> Workflow:
    """Steps that wait for others."""
    steps = [put(name, after=tuple(sorted(before))) for name, before in edges.items()]
    return workflow(*steps, outputs={name: Result(name, "etag") for name in edges})


SOUND = {
    "everything": everything(),
    "nothing": workflow(),
    "fails": workflow(Fail(name="stop", error="E", cause="always")),
    "branches at the head of branches": tangled(
        {"a": set(), "b": set(), "c": {"a", "b"}, "d": set(), "e": {"c", "d"}}
    ),
    "function names": workflow(
        *(put(name) for name in ("sum", "run", "v", "item", "parameters")),
        outputs={"sum": Result("sum", "etag"), "v": Result("v", "etag")},
    ),
    "deep": workflow(
        guarded("outer", Graph((guarded("inner", Graph((put("core"), put("shell")))),))),
        parameters=(TOKEN,),
        outputs={"core": Result("core", "etag"), "gone": Result("inner.create", "mount_name")},
    ),
}


@pytest.mark.parametrize("made", SOUND.values(), ids=SOUND)
def test_definitions_are_sound(made: Workflow, asl_validators: AslValidators) -> None:
    definition = stepfunctions.render(made)
    assert definitions.problems(definition) == []
    assert asl_validators(definition) == []


def test_the_checks_see_what_is_unsound() -> None:
    branch = {
        "StartAt": "Twice",
        "States": {"Twice": {"Type": "Pass", "Assign": {"x": "{% $y + $z.a %}"}, "End": True}},
    }
    outer = {"Type": "Parallel", "Branches": [branch], "Assign": {"x": 1}, "Next": "Nowhere"}
    unsound = {"StartAt": "Twice", "States": {"Twice": outer}, "TimeoutSeconds": 5}
    assert set(definitions.problems(unsound)) == {
        "Twice is there twice",
        "Nowhere is nowhere",
        "a timed-out execution runs no clean-up",
        "x is assigned in an inner scope too",
        "Twice reads $y, which is assigned nowhere",
        "Twice reads $z, which is assigned nowhere",
    }


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, set[str]]:
    names = [f"s{n}" for n in range(draw(st.integers(1, 7)))]
    return {
        n: draw(st.sets(st.sampled_from(names[:i]))) if i else set() for i, n in enumerate(names)
    }


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_any_graph_becomes_a_sound_definition(edges: dict[str, set[str]]) -> None:
    assert definitions.problems(stepfunctions.render(tangled(edges))) == []


@st.composite
def nested(draw: st.DrawFn) -> Workflow:
    """A workflow of everything inside everything, each object naming results it can see."""
    numbers = count()

    def name() -> str:
        return f"s{next(numbers)}"

    def writing(seen: list[str]) -> Call:
        read = draw(st.lists(st.sampled_from(seen), max_size=2)) if seen else []
        return put(name(), join("x", *(Result(step, "etag") for step in read)))

    def graph(seen: list[str], depth: int) -> Graph:
        steps: list[Step] = []
        seen = list(seen)
        for _ in range(draw(st.integers(1, 2))):
            steps.append(step(seen, depth))
            seen += [n for n in visible(steps[-1]) if n in written(steps[-1])]
        return Graph(tuple(steps))

    def step(seen: list[str], depth: int) -> Step:
        kinds = ("put", "choose", "parallel", "guarded", "loop")
        kind = draw(st.sampled_from(kinds)) if depth else "put"
        if kind == "put":
            return writing(seen)
        label = name()
        inner = graph(seen, depth - 1)
        match kind:
            case "choose":
                empty = Graph()
                condition = Compare("eq", parameter("token"), "t")
                return Choose(name=label, condition=condition, then=inner, otherwise=empty)
            case "parallel":
                other = graph(seen, depth - 1)
                return Parallel(name=label, branches=(inner, other))
            case "guarded":
                return guarded(label, inner)
        made = loop(label, [{"key": "a"}])
        return replace(made, body=Graph((*made.body.steps, *inner.steps)))

    top = graph([], 2)
    seen = {n for each in top.steps for n in visible(each) if n in written(each)}
    outputs: dict[str, Tree] = {n: Result(n, "etag") for n in sorted(seen)}
    return workflow(*top.steps, outputs=outputs, parameters=(TOKEN,))


def written(step: Step) -> set[str]:
    """The steps that write an object, the step and those inside of it."""
    calls = (s for s in all_steps(Graph((step,))) if isinstance(s, Call))
    return {call.name for call in calls if call.operation.name == "PutObject"}


@given(nested())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_nesting_becomes_a_sound_definition(made: Workflow) -> None:
    assert problems(made) == []
    assert definitions.problems(stepfunctions.render(made)) == []


def test_rendering_twice_gives_the_same_text() -> None:
    first, second = (stepfunctions.dumps(stepfunctions.render(everything())) for _ in "ab")
    assert first == second
    assert first.endswith("}\n")
    assert json.loads(first)["QueryLanguage"] == "JSONata"


def resource(call: Call) -> str:
    made = definitions.states(stepfunctions.render(workflow(call, parameters=(TOKEN,))))
    return str(made[state(call.name)]["Resource"])


def test_a_job_is_waited_for_by_sync_only_where_it_takes_every_field() -> None:
    sync = "arn:aws:states:::sagemaker:createTrainingJob.sync"
    polled = "arn:aws:states:::aws-sdk:sagemaker:createTrainingJob"
    job = training("train.job")
    assert job.until is not None
    assert resource(job) == sync
    assert resource(training("train.job", RemoteDebugConfig={})) == polled
    assert resource(replace(job, outputs={"arn": Output(("TrainingJobArn",))})) == polled
    newer: tuple[dict[str, Any], ...] = (
        {"ResourceConfig": {"TrainingPlanArn": "arn"}},
        {"StoppingCondition": {"MaxPendingTimeInSeconds": 7200}},
        {"InputDataConfig": [{"DataSource": {"S3DataSource": {"HubAccessConfig": {}}}}]},
    )
    for nested in newer:
        assert resource(training("train.job", **nested)) == polled
    own = {"Environment": {"ResourceConfig": "x"}, "HyperParameters": {"DataSource": "y"}}
    groups = {"ResourceConfig": {"InstanceGroups": [], "KeepAlivePeriodInSeconds": 60}}
    assert resource(training("train.job", **own, **groups)) == sync
    stopped_is_well = replace(job.until, success=frozenset(["Completed", "Stopped"]))
    assert resource(replace(job, until=stopped_is_well)) == polled
    other = Operation("sagemaker", "DescribeTrainingJob", {"TrainingJobName": "other"})
    assert resource(replace(job, until=replace(job.until, poll=other))) == polled


def test_each_alternative_is_followed_as_it_can_be_and_all_end_at_the_same_state() -> None:
    call = falling_back("train.job")
    following = put("end", Result("train.job", "arn"))
    made = definitions.states(stepfunctions.render(workflow(call, following, parameters=(TOKEN,))))
    resources = [made[f"train-job{end}"]["Resource"] for end in ("", "-Fallback1", "-Fallback2")]
    assert [str(arn).rpartition(":")[2] for arn in resources] == [
        "createTrainingJob.sync",
        "createTrainingJob.sync",
        "createTrainingJob",
    ]
    for way in ("", "-Fallback1", "-Fallback2"):
        # What a job returns is looked at as a poll's answer is: somebody may have stopped it.
        status = f"train-job-{way.removeprefix('-')}Status"
        completed = made[status]["Choices"][0]
        assert completed["Next"] == "end"
        assert "train__job" in completed["Assign"]
        assert made[f"train-job{way}"]["Next"] in (status, status.replace("Status", "Poll"))
    assert made["train-job"]["Next"] == "train-job-Status"


def test_services_have_the_names_of_the_integration() -> None:
    call = Call(name="ask", operation=Operation("sagemaker-runtime", "InvokeEndpoint", {}))
    assert resource(call) == "arn:aws:states:::aws-sdk:sagemakerruntime:invokeEndpoint"


def test_long_waits_are_polled_less_often_instead_of_overflowing_the_history() -> None:
    job = training("train.job", RemoteDebugConfig={})
    assert job.until is not None
    job = replace(job, until=replace(job.until, interval_s=30, timeout_s=864_000))
    made = definitions.states(stepfunctions.render(workflow(job, parameters=(TOKEN,))))
    assert made["train-job-Wait"]["Seconds"] == "{% $train__job__Polls < 1000 ? 30 : 834 %}"
    assert "$train__job__Polls >= 2000" in json.dumps(made["train-job-Status"])


def test_variables_never_hide_functions() -> None:
    assert variable("sum") == "sum_"
    assert variable("v") == "v_"
    assert variable("train.sum") == "train__sum"


def test_everything_that_is_impossible_is_said_at_once() -> None:
    unclear = ErrorPattern("ValidationException")
    full = falling_back("full")
    assert full.fallback is not None
    with pytest.raises(UnsupportedError) as refused:
        stepfunctions.render(
            workflow(
                Call(name="unknown", operation=Operation("sagemakr", "CreateModel", {})),
                Call(
                    name="stream",
                    operation=Operation(
                        "sagemaker-runtime", "InvokeEndpointWithResponseStream", {}
                    ),
                ),
                replace(
                    endpoint_status("vague", "e"), retry=Retry(errors=(unclear,), backoff_rate=0.5)
                ),
                replace(
                    full,
                    fallback=replace(full.fallback, refusals=(unclear,)),
                    until=replace(cast(Until, full.until), absent=(unclear,)),
                ),
                loop("wide", [], max_concurrency=41),
                Wait(name="long", seconds=1e9),
            )
        )
    text = str(refused.value)
    for part in (
        "unknown: Step Functions has no integration known here for service 'sagemakr'",
        "stream: Step Functions has no integration for",
        "vague: Step Functions does not tell ValidationException",
        "vague: retry.backoff_rate is 0.5",
        "full: Step Functions does not tell ValidationException of sagemaker:CreateTrainingJob",
        "full: Step Functions does not tell ValidationException of sagemaker:DescribeTrainingJob",
        "wide: max_concurrency is 41",
        "long: waits",
    ):
        assert part in text


def test_names_that_are_too_long_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="at most 80 characters"):
        stepfunctions.render(workflow(put("a" * 81)))
    with pytest.raises(UnsupportedError, match="has more than 80 characters"):
        stepfunctions.render(workflow(put(".".join(["a"] * 30))))


def test_requests_and_definitions_that_are_too_long_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="its request is"):
        stepfunctions.render(workflow(put("big", "x" * 262_144)))
    with pytest.raises(UnsupportedError, match="a definition has at most 1048576"):
        stepfunctions.render(workflow(*(put(f"big{n}", "x" * 200_000) for n in range(6))))


def test_only_what_others_read_leaves_a_branch() -> None:
    made = workflow(put("left"), put("right"), outputs={"left": Result("left", "etag")})
    given = definitions.states(stepfunctions.render(made))
    assert given["left-Together-Branch1-Result"]["Output"] == {"results": {"left": "{% $left %}"}}
    assert given["left-Together-Branch2-Result"]["Output"] == {"results": {}}


def test_the_limit_counts_what_is_sent() -> None:
    definition: dict[str, Json] = {"States": {"a": {"Comment": "x" * (MAX_DEFINITION - 40)}}}
    assert list(exceeded(definition)) == []
    definition["Comment"] = "y" * 40
    [problem] = exceeded(definition)
    assert f"at most {MAX_DEFINITION}" in problem.message


def test_text_for_bytes_is_refused_and_json_for_them_is_not() -> None:
    def sending(body: Tree) -> Workflow:
        request: dict[str, Tree] = {"EndpointName": "e", "ContentType": "text/csv", "Body": body}
        asked = Operation("sagemaker-runtime", "InvokeEndpoint", request)
        given = (ParameterSpec(name="data"), ParameterSpec(name="rows", type="array"))
        described = Call(
            name="described",
            operation=Operation("sagemaker", "DescribeEndpoint", {"EndpointName": "e"}),
            outputs={"status": Output(("EndpointStatus",), kind="string")},
        )
        ask = Call(name="ask", operation=asked, after=("described",))
        return workflow(described, ask, parameters=given)

    status = Result("described", "status")
    for text in ("1,2,3", parameter("data"), status, join("of ", status)):
        with pytest.raises(UnsupportedError, match="Body is text, which Step Functions sends as"):
            stepfunctions.render(sending(text))
    assert stepfunctions.render(sending(parameter("rows")))
    made: Any = stepfunctions.render(sending({"instances": [[1, "x"]]}))
    assert made["States"]["ask"]["Arguments"]["Body"] == {"instances": [[1, "x"]]}


@pytest.mark.parametrize("text", ["hello", parameter("text")])
def test_text_for_bytes_is_refused_in_lists_too(text: Tree) -> None:
    records: Tree = [
        {"PartitionKey": "a", "Data": {"said": text}},
        {"PartitionKey": "b", "Data": text},
    ]
    asked = Operation("kinesis", "PutRecords", {"StreamName": "s", "Records": records})
    made = workflow(Call(name="send", operation=asked), parameters=(ParameterSpec(name="text"),))
    with pytest.raises(UnsupportedError, match=r"Records\[1\]\.Data is text") as error:
        stepfunctions.render(made)
    assert "Records[0]" not in str(error.value)


def test_no_pause_between_attempts_is_longer_than_on_the_other_backends() -> None:
    request: dict[str, Tree] = {"FileSystemId": "fs-1"}
    asked = Operation("fsx", "DescribeFileSystems", request)
    call = Call(name="ask", operation=asked, retry=Retry(attempts=10))
    made: Any = stepfunctions.render(workflow(call))
    (retrier,) = made["States"]["ask"]["Retry"]
    assert (retrier["MaxAttempts"], retrier["MaxDelaySeconds"]) == (9, max(backoff(call.retry)))


def test_every_function_names_the_variable_of_its_result() -> None:
    assert set(RESULTS) == set(Function)


def test_a_time_that_several_fields_need_is_written_once() -> None:
    data = {"time_text": {"of": {"parameter": "until"}, "format": "%Y/%m/%d"}}
    made = Pipeline.parse(
        {
            "name": "weekly",
            "region": "us-east-1",
            "workspace": "s3://bucket/runs",
            "parameters": {"until": {}},
            "stages": {
                "staging": {
                    "kind": "data_staging",
                    "source": {"join": ["s3://data/", data, "/"]},
                    "destination": {"kind": "s3", "uri": "s3://bucket/staged"},
                }
            },
        }
    )
    assert "$until__Time" in json.dumps(stepfunctions.render(made.lower()))
