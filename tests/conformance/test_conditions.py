"""Conditions skip the same stages on every backend, and leave the same outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.checks.rules import check
from orchestration.expressions import (
    Compare,
    Field,
    Function,
    Item,
    Parameter,
    Result,
    Tree,
    apply,
    join,
)
from orchestration.graph import (
    Call,
    Choose,
    ForEach,
    Graph,
    Guarded,
    Operation,
    Output,
    ParameterSpec,
    Step,
    Workflow,
)
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, dag_runs, direct_runs, executions, run
from orchestration.local.run.report import Followed

pytestmark = pytest.mark.slow

BUCKET = "choices"
FULL = {"equal": [{"parameter": "mode"}, "full"]}


def query(sql: Any, **further: Any) -> dict[str, Any]:
    """A stage with a job."""
    return {
        "kind": "aws_call",
        "service": "athena",
        "operation": "StartQueryExecution",
        "request": {
            "QueryString": sql,
            "ResultConfiguration": {"OutputLocation": "s3://bucket/results"},
        },
        "results": {"id": "QueryExecutionId"},
        "poll": {
            "operation": "GetQueryExecution",
            "request": {"QueryExecutionId": {"ref": "self.id"}},
            "status": "QueryExecution.Status.State",
            "success": ["SUCCEEDED"],
            "failure": ["FAILED", "CANCELLED"],
            "outputs": {"sql": "QueryExecution.Query"},
        },
        **further,
    }


def message(text: Any, **further: Any) -> dict[str, Any]:
    """A stage without a job."""
    return {
        "kind": "aws_call",
        "service": "sns",
        "operation": "Publish",
        "request": {"TopicArn": {"parameter": "topic"}, "Message": text},
        "results": {"id": "MessageId"},
        **further,
    }


STAGES: dict[str, Any] = {
    "full": query("SELECT 'full'", when=FULL),
    "quick": query("SELECT 'quick'", when={"not": FULL}),
    # Skipped with the stage that it reads, and with its own condition.
    "check": message({"ref": "full.sql"}, when={"parameter": "checked"}),
    # Waits, and goes on all the same.
    "told": message("over", after=["check"]),
    "best": message(
        {"join": ["best: ", {"first_of": [{"ref": "full.sql"}, {"ref": "quick.sql"}]}]}
    ),
    "last": message({"first_of": [{"ref": "check.id"}, "nothing was checked"]}),
    # Compares what another stage gave.
    "again": query("SELECT 'again'", when={"not_equal": [{"ref": "told.id"}, "nothing"]}),
}


def pipeline(stages: dict[str, Any]) -> Pipeline:
    named = {}
    for name, stage in stages.items():
        poll = stage.get("poll")
        if poll is not None:
            own = {"QueryExecutionId": {"ref": f"{name}.id"}}
            stage = {**stage, "poll": {**poll, "request": own}}
        named[name] = stage
    return Pipeline.parse(
        {
            "name": "conditions",
            "region": "us-east-1",
            "workspace": "s3://bucket/runs",
            "parameters": {
                "topic": {},
                "mode": {"default": "quick"},
                "checked": {"type": "boolean", "default": True},
            },
            "stages": named,
        }
    )


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.001) as started:
        yield started


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
@pytest.mark.parametrize(
    ("mode", "checked", "ran"),
    [
        ("full", True, {"full", "check", "told", "best", "last", "again"}),
        ("full", False, {"full", "told", "best", "last", "again"}),
        ("quick", True, {"quick", "told", "best", "last", "again"}),
    ],
)
def test_a_stage_runs_where_its_condition_holds(
    mode: str, checked: bool, ran: set[str], on: On, airflow: LocalAirflow, aws: EmbeddedAws
) -> None:
    topic = aws.client("sns").create_topic(Name="news")["TopicArn"]
    parameters = {"topic": topic, "mode": mode, "checked": checked}
    report = run(pipeline(STAGES), on=on, aws=aws, airflow=airflow, parameters=parameters)
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    outputs: Any = report.outputs
    assert {name for name, values in outputs.items() if values["id"] is not None} == ran
    assert {values.get("sql") for name, values in outputs.items() if name not in ran} <= {None}
    assert {stage.name for stage in report.stages if stage.state == "succeeded"} == ran
    assert {s.state for s in report.stages if s.name not in ran} == {"skipped"}
    sent = [call for call in report.calls if call.operation in ("StartQueryExecution", "Publish")]
    assert len(sent) == len(ran)
    messages = [c.request["Message"] for c in sent if c.operation == "Publish"]
    assert f"best: SELECT '{mode}'" in messages
    assert ("nothing was checked" in messages) == ("check" not in ran)


def _put(name: str, key: Any) -> Call:
    request = {"Bucket": BUCKET, "Key": key}
    etag = Output(("ETag",), kind="string")
    return Call(name=name, operation=Operation("s3", "PutObject", request), outputs={"etag": etag})


def _choice(name: str, holds: bool, *steps: Step, **collect: Tree) -> Choose:
    return Choose(
        name=name,
        condition=Compare("eq", Parameter("mode"), "full" if holds else "quick"),
        then=Graph(steps),
        otherwise=Graph(),
        collect=collect,
        absent=dict.fromkeys(collect),
    )


def _nested() -> Workflow:
    """Choices in each other, in a loop and in what is released, all read from outside."""
    inner = _choice("a.inner", True, _put("a.put", "inner"), etag=Result("a.put", "etag"))
    outer = _choice("a.outer", True, inner, etag=Result("a.inner", "etag"))
    empty = _choice("b.when", False, _put("b.put", "never"), etag=Result("b.put", "etag"))
    key = join("loop/", Field(Item(), "key"))
    looped = _choice("c.when", True, _put("c.put", key), key=key)
    loop = ForEach(
        name="c.each",
        items=[{"key": "1"}, {"key": "2"}],
        body=Graph((looped,)),
        collect={"key": Result("c.when", "key")},
        max_concurrency=2,
    )
    removed = Operation("s3", "DeleteObject", {"Bucket": BUCKET, "Key": "acquired"})
    guard = Guarded(
        name="g.guard",
        acquire=_put("g.acquire", "acquired"),
        body=Graph((outer, empty)),
        cleanup=Graph((Call(name="g.release", operation=removed),)),
    )
    first = apply(Function.FIRST_OF, Result("b.when", "etag"), Result("a.outer", "etag"))
    told = _put("d.put", join("told/", first))
    outputs: dict[str, Tree] = {
        "same": Compare("eq", first, Result("a.outer", "etag")),
        "absent": Result("b.when", "etag"),
        "keys": apply(Function.COLUMN, Result("c.each", "items"), "key"),
    }
    return Workflow(
        name="nested",
        graph=Graph((guard, loop, told)),
        parameters=(ParameterSpec(name="mode"),),
        outputs=outputs,
    )


def test_choices_nest_on_every_driver(airflow: LocalAirflow, aws: EmbeddedAws) -> None:
    aws.client("s3").create_bucket(Bucket=BUCKET)
    made, values = check(_nested()), {"mode": "full"}
    runs: list[Callable[[], Followed]] = [
        lambda: direct_runs.follow(aws, made, values, "d", _silent, workspace=f"s3://{BUCKET}/w"),
        lambda: executions.follow(aws, made, values, "s", _silent),
        lambda: dag_runs.follow(aws, made, values, "a", _silent, airflow),
    ]
    keys = []
    for follow in runs:
        before = len(aws.calls())
        followed = follow()
        assert followed.state == "succeeded", followed.cause
        assert followed.outputs == {"same": True, "absent": None, "keys": ["loop/1", "loop/2"]}
        put = (c.request["Key"] for c in aws.calls()[before:] if c.operation == "PutObject")
        keys.append(sorted(key.partition("/")[0] for key in put if not key.startswith("w/")))
    assert keys == [["acquired", "inner", "loop", "loop", "told"]] * 3


def _silent(_: object) -> None:
    """Nobody watches."""
