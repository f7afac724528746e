"""A stage with ``for_each`` runs once for each element on every backend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from orchestration import Pipeline
from orchestration.graph import ParameterValue
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import On, RunReport, run
from tests.conformance.test_conditions import message, query

pytestmark = pytest.mark.slow

QUERY = query(
    {"join": ["SELECT '", {"each": "item"}, "'"]},
    for_each={"items": {"parameter": "markets"}, "max_concurrency": 2, "at_most": 3},
)
STAGES = {
    "ask": {
        **QUERY,
        "poll": {**QUERY["poll"], "request": {"QueryExecutionId": {"ref": "ask.id"}}},
    },
    # A loop over what the other gave, and one over a literal list that a condition may skip.
    "tell": message({"join": ["asked ", {"each": "item"}]}, for_each={"items": {"ref": "ask.sql"}}),
    "more": message(
        {"join": ["more ", {"each": "item"}]},
        for_each={"items": [1, 2.5]},
        when={"parameter": "all"},
    ),
}
PIPELINE = {
    "name": "markets",
    "region": "us-east-1",
    "workspace": "s3://bucket/runs",
    "parameters": {
        "topic": {},
        "markets": {"type": "array", "default": ["de"]},
        "all": {"type": "boolean", "default": False},
    },
    "stages": STAGES,
}


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.001) as started:
        yield started


def follow(
    on: On, aws: EmbeddedAws, airflow: LocalAirflow, **parameters: ParameterValue
) -> RunReport:
    topic: str = aws.client("sns").create_topic(Name="news")["TopicArn"]
    values = {"topic": topic, **parameters}
    return run(Pipeline.parse(PIPELINE), on=on, aws=aws, airflow=airflow, parameters=values)


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_each_element_has_its_own_job(on: On, airflow: LocalAirflow, aws: EmbeddedAws) -> None:
    report = follow(on, aws, airflow, markets=["de", "it's", "fr"], all=True)
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    outputs: Any = report.outputs
    asked = ["SELECT 'de'", "SELECT 'it's'", "SELECT 'fr'"]
    assert outputs["ask"]["sql"] == asked
    assert len({*outputs["ask"]["id"]}) == 3
    assert (len(outputs["tell"]["id"]), len(outputs["more"]["id"])) == (3, 2)
    calls = [call.request for call in report.calls if call.operation == "StartQueryExecution"]
    assert len({call["ClientRequestToken"] for call in calls}) == 3
    sent = [call.request["Message"] for call in report.calls if call.operation == "Publish"]
    assert Counter(sent) == Counter([*(f"asked {sql}" for sql in asked), "more 1", "more 2.5"])


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_an_empty_list_gives_empty_lists(on: On, airflow: LocalAirflow, aws: EmbeddedAws) -> None:
    report = follow(on, aws, airflow, markets=[])
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    outputs: Any = report.outputs
    assert outputs == {
        "ask": {"id": [], "sql": []},
        "tell": {"id": []},
        "more": {"id": None},
    }


@pytest.mark.parametrize(
    ("on", "given"),
    [
        ("direct", {}),
        ("airflow", {}),
        # The only driver whose language may take a list of one apart.
        ("step-functions", {}),
        ("step-functions", {"markets": ["de"]}),
    ],
)
def test_a_list_of_one_stays_a_list(
    given: dict[str, Any], on: On, airflow: LocalAirflow, aws: EmbeddedAws
) -> None:
    report = follow(on, aws, airflow, **given)
    assert (report.state, report.error, report.cause) == ("succeeded", None, None)
    outputs: Any = report.outputs
    assert outputs["ask"]["sql"] == ["SELECT 'de'"]
    assert len(outputs["tell"]["id"]) == 1


OBJECTS = {
    **PIPELINE,
    "parameters": {"topic": {}, "rows": {"type": "array"}},
    "stages": {
        "tell": message(
            {"join": [{"each": "market"}, " ", {"each": "days"}, " ", {"each": "full"}]},
            for_each={
                "items": {"parameter": "rows"},
                "fields": {"market": "string", "days": "number", "full": "boolean"},
                "key": "market",
                "at_most": 3,
            },
        )
    },
}


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_elements_may_be_objects_with_fields(
    on: On, airflow: LocalAirflow, aws: EmbeddedAws
) -> None:
    topic: str = aws.client("sns").create_topic(Name="news")["TopicArn"]
    pipeline = Pipeline.parse(OBJECTS)
    good: list[Any] = [
        {"market": "de", "days": 3, "full": True, "more": "is not read"},
        {"market": "it's", "days": 0.5, "full": False},
    ]
    lists: dict[str, list[Any]] = {
        "": good,
        "element 2 has no number days; element 3 is not an object": [good[0], {"market": "x"}, "x"],
        "two elements have the same market": [good[0], {**good[1], "market": "de"}],
    }
    for wrong, rows in lists.items():
        parameters = {"topic": topic, "rows": rows}
        report = run(pipeline, on=on, aws=aws, airflow=airflow, parameters=parameters)
        sent = [call.request["Message"] for call in report.calls if call.operation == "Publish"]
        if not wrong:
            assert (report.state, report.cause) == ("succeeded", None)
            assert sorted(sent) == ["de 3 true", "it's 0.5 false"]
            continue
        assert (report.state, report.error, sent) == ("failed", "WrongElements", [])
        assert report.cause == (
            f"stage tell: {wrong}; for_each expects objects with market: string, days: number, "
            "full: boolean, and another market in each"
        )


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_an_element_that_fails_fails_the_run(
    on: On, airflow: LocalAirflow, aws: EmbeddedAws
) -> None:
    aws.inject(Fault("athena", "StartQueryExecution", "InvalidRequestException", "bad SQL"))
    report = follow(on, aws, airflow, markets=["de", "fr"])
    assert report.state == "failed"
    assert report.error == "InvalidRequest"
    assert "bad SQL" in str(report.cause)
    names = [call.operation for call in report.calls]
    # The other one comes to its end, and nothing goes on with what it gave.
    assert (names.count("StartQueryExecution"), "Publish" in names) == (2, False)


def test_going_on_with_a_run_pays_for_no_element_again(aws: EmbeddedAws) -> None:
    topic: str = aws.client("sns").create_topic(Name="news")["TopicArn"]
    aws.inject(Fault("sns", "Publish", "AuthorizationErrorException", "no", status=403))
    values: dict[str, ParameterValue] = {"topic": topic, "markets": ["de", "fr"]}
    pipeline = Pipeline.parse(PIPELINE)
    reports = [run(pipeline, aws=aws, parameters=values, run_id="again") for _ in range(2)]
    assert [report.state for report in reports] == ["failed", "succeeded"], reports[1].cause
    # A new attempt sends the same tokens, by which the service recognises them.
    first, second = (
        {
            c.request["ClientRequestToken"]
            for c in report.calls
            if c.service == "athena" and "ClientRequestToken" in c.request
        }
        for report in reports
    )
    assert first == second
    assert len(first) == 2


@pytest.mark.parametrize("on", ["direct", "step-functions", "airflow"])
def test_too_many_elements_fail_before_the_first(
    on: On, airflow: LocalAirflow, aws: EmbeddedAws
) -> None:
    report = follow(on, aws, airflow, markets=["a", "b", "c", "d"])
    assert (report.state, report.error, report.cause) == (
        "failed",
        "TooManyElements",
        "stage ask: expected at most 3 elements of for_each, got 4",
    )
    assert [c.operation for c in report.calls if c.service in ("athena", "sns")] == []
