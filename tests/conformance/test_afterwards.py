"""The stages after the end of a run do the same on every driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.checks.rules import check
from orchestration.expressions import Compare, Not, Parameter, Result, join
from orchestration.graph import (
    Call,
    Choose,
    Concluded,
    Graph,
    Guarded,
    Kept,
    Operation,
    Output,
    Parallel,
    ParameterSpec,
    Require,
    Workflow,
)
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import dag_runs, direct_runs, executions, run
from orchestration.local.run.report import Followed, RunReport
from tests.conformance import normal
from tests.conformance.test_conformance import BACKENDS, Backend

pytestmark = pytest.mark.slow

IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/words:1"
CAUSE = {"join": [{"outcome": "state"}, "|", {"outcome": "error"}, "|", {"outcome": "cause"}]}
Reports = dict[Backend, RunReport]


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.003) as embedded:
        s3 = embedded.client("s3")
        s3.create_bucket(Bucket="ends")
        s3.put_object(Bucket="ends", Key="data/a.txt", Body=b"one")
        embedded.client("sns").create_topic(Name="news")
        yield embedded


def tells(message: Any, topic: str = "news") -> dict[str, Any]:
    return {
        "kind": "aws_call",
        "service": "sns",
        "operation": "Publish",
        "request": {
            "TopicArn": f"arn:aws:sns:us-east-1:123456789012:{topic}",
            "Message": message,
        },
        "results": {"message": "MessageId"},
    }


def made(name: str, *, source: str = "data", **last: Any) -> Pipeline:
    staging = {
        "kind": "data_staging",
        "source": {"join": [f"s3://ends/{source}", {"parameter": "below"}]},
    }
    return Pipeline.parse(
        {
            "name": name,
            "region": "us-east-1",
            "workspace": "s3://ends/runs",
            "role": "arn:aws:iam::123456789012:role/Execution",
            "parameters": {"below": {"default": ""}},
            "stages": {"staging": staging},
            **last,
        }
    )


def everywhere(
    pipeline: Pipeline,
    aws: EmbeddedAws,
    airflow: LocalAirflow,
    *,
    refused: bool = False,
    **more: Any,
) -> Reports:
    """Run a pipeline on every driver, and compare; a service that ``refused`` has its own words."""
    reports: Reports = {}
    for backend in BACKENDS:
        name = f"{pipeline.name}-{backend}"
        reports[backend] = run(pipeline, on=backend, aws=aws, airflow=airflow, run_id=name, **more)
    first, *others = reports.values()
    for other in others:
        assert normal.changes(other.calls) == normal.changes(first.calls)
        assert other.state == first.state
        if not refused:
            assert other.error == first.error
            assert normal.anonymous(other.cause) == normal.anonymous(first.cause)
        assert normal.anonymous(other.outputs) == normal.anonymous(first.outputs)
    return reports


def told(report: RunReport) -> set[str]:
    """Return the messages that a run has published."""
    return {
        str(call.request["Message"])
        for call in report.calls
        if call.operation == "Publish" and not call.error_code
    }


ENDS: dict[str, Any] = {
    "on_failure": {"alarm": tells({"join": ["alarm ", CAUSE]})},
    "on_success": {
        "praise": tells({"join": ["praise ", {"ref": "staging.location"}]}),
        "counted": {
            **tells("counted"),
            "after": ["praise"],
            "when": {"equal": [{"ref": "staging.object_count"}, 1]},
        },
    },
    "always": {"note": tells({"join": ["note ", CAUSE]})},
}


def test_stages_follow_a_run_that_succeeded(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    for report in everywhere(made("well", **ENDS), aws, airflow).values():
        assert (report.state, report.error, report.cause) == ("succeeded", None, None)
        outputs: Any = report.outputs
        messages = told(report)
        assert f"praise {outputs['staging']['location']}" in messages
        assert "note succeeded||" in messages
        assert {text.split(" ")[0] for text in messages} == {"praise", "counted", "note"}


def test_stages_follow_a_run_that_failed(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    for report in everywhere(made("badly", source="nothing", **ENDS), aws, airflow).values():
        assert (report.state, report.error) == ("failed", "SourceNotUsable")
        ending = f"failed|SourceNotUsable|{report.cause}"
        assert told(report) == {f"alarm {ending}", f"note {ending}"}


def test_a_stage_after_the_end_that_fails_hides_no_failure(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    broken = {"broken": tells("never", topic="missing"), "note": tells({"outcome": "error"})}
    pipeline = made("twice", source="nothing", on_failure=broken)
    for report in everywhere(pipeline, aws, airflow).values():
        assert (report.state, report.error) == ("failed", "SourceNotUsable")
        assert told(report) == {"SourceNotUsable"}


def test_a_run_fails_where_a_stage_after_its_end_does(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    late = {
        "kind": "data_staging",
        "source": "s3://ends/nothing",
        "destination": {"kind": "s3", "uri": "s3://ends/late"},
    }
    pipeline = made("late", on_success={"late": late}, always={"note": tells({"outcome": "state"})})
    for report in everywhere(pipeline, aws, airflow).values():
        assert (report.state, report.error) == ("failed", "SourceNotUsable")
        assert str(report.cause).startswith("stage late expected 1 to 500 objects")
        assert report.outputs is None
        assert told(report) == {"succeeded"}


def test_a_job_after_the_end_is_paid_once_for_each_attempt(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    swept = {
        "kind": "processing_job",
        "image": IMAGE,
        "command": ["sh", "-c", 'echo "$CAUSE" > /opt/ml/processing/output/words/cause.txt'],
        "environment": {"CAUSE": {"outcome": "error"}},
        "results": {"words": {}},
        "cluster": {"instance_type": "ml.m5.large"},
        "local": {
            "command": ["sh", "-c", 'echo "$CAUSE" > /opt/ml/processing/output/words/cause.txt']
        },
    }
    note = tells({"join": ["swept into ", {"ref": "swept.words"}]})
    pipeline = made("again", source="nothing", on_failure={"swept": swept, "note": note})
    first = everywhere(pipeline, aws, airflow)
    second = everywhere(pipeline, aws, airflow)
    for backend in BACKENDS:
        places = []
        for report in (first[backend], second[backend]):
            assert (report.state, report.error) == ("failed", "SourceNotUsable")
            jobs = [c for c in report.calls if c.operation == "CreateProcessingJob"]
            assert len(jobs) == 1
            [text] = told(report)
            places.append(text.removeprefix("swept into s3://ends/"))
        assert places[0] != places[1]
        for place in places:
            body = aws.client("s3").get_object(Bucket="ends", Key=f"{place}/cause.txt")["Body"]
            assert body.read() == b"SourceNotUsable\n"


def holding(name: str, **further: Any) -> Pipeline:
    """Return a pipeline whose stage `hold` gets an identifier that AWS chooses, beside another."""
    use = {
        "kind": "data_staging",
        "source": {"join": ["s3://ends/data", {"parameter": "used"}]},
        "after": ["hold"],
    }
    held = {"join": ["arn:aws:sns:us-east-1:123456789012:", {"parameter": "held"}]}
    hold = tells("held")
    hold = {**hold, "after": ["staging"], "request": {**hold["request"], "TopicArn": held}}
    either = {"first_of": [{"ref": "hold.message"}, "nothing"]}
    source = {"join": ["s3://ends/data", {"parameter": "below"}]}
    staging = {"kind": "data_staging", "source": source}
    whole: dict[str, Any] = {
        "parameters": {
            name: {"default": value}
            for name, value in (("below", ""), ("held", "news"), ("used", ""), ("asked", "yes"))
        },
        "stages": {
            "staging": staging,
            "hold": {**hold, **further},
            "use": use,
            "aside": tells("aside"),
        },
        "on_failure": {"lost": {**tells("lost"), "when": {"equal": [either, "nothing"]}}},
        "always": {
            "tidy": tells({"join": ["tidied ", {"ref": "hold.message"}]}),
            "told": {**tells({"join": ["after ", {"ref": "tidy.message"}]}), "after": ["tidy"]},
            "note": tells({"join": ["held ", either]}),
        },
    }
    return Pipeline.parse({**made(name).model_dump(mode="json"), **whole})


def cleaned(report: RunReport) -> set[str]:
    """Return the beginnings of the messages of the stages after the end."""
    return {text.split(" ")[0] for text in told(report)} - {"aside"}


@pytest.mark.parametrize(
    ("parameters", "messages"),
    [
        pytest.param({}, {"held", "tidied", "after"}, id="succeeds"),
        pytest.param({"below": "/no"}, {"held", "lost"}, id="fails before it"),
        pytest.param({"held": "missing"}, {"held", "lost"}, id="fails at it"),
        pytest.param({"used": "/no"}, {"held", "tidied", "after"}, id="fails after it"),
    ],
)
def test_what_aws_named_is_cleaned_up_however_a_run_ends(
    aws: EmbeddedAws, airflow: LocalAirflow, parameters: dict[str, str], messages: set[str]
) -> None:
    pipeline, refused = holding("-".join(["holds", *parameters])), "held" in parameters
    reports = everywhere(pipeline, aws, airflow, refused=refused, parameters=parameters)
    for backend, report in reports.items():
        assert report.state == ("failed" if parameters else "succeeded")
        assert cleaned(report) == messages
        assert ("held nothing" in told(report)) == ("tidied" not in messages)
        # On Airflow a short step that is skipped is a task that did nothing.
        if backend != "airflow":
            tidy = next(stage for stage in report.stages if stage.name == "tidy")
            assert tidy.state == ("succeeded" if "tidied" in messages else "skipped")


def test_a_further_attempt_cleans_up_after_itself(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    pipeline = holding("held-again", when={"equal": [{"parameter": "asked"}, "yes"]})
    values = {"used": "/no"}
    for backend in BACKENDS:
        # A cleared task of Airflow is alone in being performed again: `hold` is not.
        for _ in range(2):
            report = run(
                pipeline, on=backend, aws=aws, airflow=airflow, run_id="again", parameters=values
            )
            assert report.error == "SourceNotUsable"
            [tidied] = [text for text in told(report) if text.startswith("tidied ")]
            assert f"held {tidied.removeprefix('tidied ')}" in told(report)


def test_nothing_is_cleaned_up_that_a_condition_has_skipped(
    aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    pipeline = holding("held-not", when={"equal": [{"parameter": "asked"}, "yes"]})
    for report in everywhere(pipeline, aws, airflow, parameters={"asked": "no"}).values():
        assert report.state == "succeeded"
        assert told(report) == {"aside", "held nothing"}


def put(name: str, key: Any, **more: Any) -> Call:
    request = {"Bucket": "ends", "Key": key}
    etag = Output(("ETag",), kind="string")
    operation = Operation("s3", "PutObject", request)
    return Call(name=name, operation=operation, outputs={"etag": etag}, **more)


def unless(name: str, stops: str, **more: Any) -> Require:
    condition = Compare("ne", Parameter("stops"), stops)
    return Require(name=name, condition=condition, error="Stopped", cause=f"at {name}", **more)


def everywhere_in_a_graph() -> Workflow:
    """Return a workflow that keeps results in a choice in a guard, and in branches."""
    inner = Choose(
        name="a.inner",
        condition=Not(Compare("eq", Parameter("stops"), "never")),
        then=Graph((unless("a.late", "late"),)),
        otherwise=Graph(),
        after=("a.put",),
    )
    outer = Choose(
        name="a.when",
        condition=Not(Compare("eq", Parameter("stops"), "skips")),
        then=Graph((unless("a.early", "early"), put("a.put", "a", after=("a.early",)), inner)),
        otherwise=Graph(),
    )
    removed = Operation("s3", "DeleteObject", {"Bucket": "ends", "Key": "acquired"})
    guard = Guarded(
        name="g.guard",
        acquire=put("g.acquire", "acquired"),
        body=Graph((outer,)),
        cleanup=Graph((Call(name="g.release", operation=removed),)),
    )
    branch = Graph((put("b.put", "b"), unless("b.late", "branch", after=("b.put",))))
    beside = Parallel(name="p", branches=(branch, Graph((put("c.put", "c"),))))
    names = ("a", "b", "c")
    values = {n: Kept(value=Result(f"{n}.put", "etag"), steps=(f"{n}.put",)) for n in names}
    conclusion = tuple(
        Choose(
            name=f"{name}_told.when",
            condition=Compare("ne", Result("outcome", name), None),
            then=Graph((put(f"{name}_told.put", join(f"told/{name}/", Result("outcome", name))),)),
            otherwise=Graph(),
        )
        for name in names
    )
    end = Concluded(
        name="outcome", body=Graph((guard, beside)), conclusion=Graph(conclusion), kept=values
    )
    return Workflow(name="kept", graph=Graph((end,)), parameters=(ParameterSpec(name="stops"),))


@pytest.mark.parametrize(
    ("stops", "kept"),
    [("late", "abc"), ("early", "bc"), ("branch", "abc")],
)
def test_what_has_ended_well_is_known_wherever_the_run_failed(
    airflow: LocalAirflow, aws: EmbeddedAws, stops: str, kept: str
) -> None:
    made, values, name = check(everywhere_in_a_graph()), {"stops": stops}, f"kept-{stops}"
    runs: list[Callable[[], Followed]] = [
        lambda: direct_runs.follow(aws, made, values, name, silent, workspace="s3://ends/w"),
        lambda: executions.follow(aws, made, values, name, silent),
        lambda: dag_runs.follow(aws, made, values, name, silent, airflow),
    ]
    for follow in runs:
        before = len(aws.calls())
        followed = follow()
        assert (followed.state, followed.error) == ("failed", "Stopped")
        sent = (str(c.request.get("Key", "")) for c in aws.calls()[before:])
        told = sorted(key.split("/")[1] for key in sent if key.startswith("told/"))
        assert told == list(kept)


def silent(_: object) -> None:
    """Nobody watches."""
