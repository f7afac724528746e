"""A loop inside of a loop does the same on every driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestration.expressions import Field, Item, Result, Tree, join
from orchestration.graph import Call, ForEach, Graph, Operation, Output, Workflow
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import dag_runs, direct_runs, executions
from orchestration.local.run.report import Followed

pytestmark = pytest.mark.slow

BUCKET = "loops"
LISTS: Tree = (
    {"name": "a", "parts": [{"key": "1"}, {"key": "2"}]},
    {"name": "b", "parts": []},
    {"name": "c", "parts": [{"key": "3"}]},
)


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.002) as embedded:
        embedded.client("s3").create_bucket(Bucket=BUCKET)
        yield embedded


def _put(name: str, key: Any) -> Call:
    request = {"Bucket": BUCKET, "Key": key}
    etag = Output(("ETag",), kind="string")
    return Call(name=name, operation=Operation("s3", "PutObject", request), outputs={"etag": etag})


def _nested() -> Workflow:
    inner = ForEach(
        name="outer.inner",
        items=Field(Item(), "parts"),
        body=Graph((_put("outer.part", join("part/", Field(Item(), "key"))),)),
        collect={"key": Field(Item(), "key")},
        max_concurrency=2,
    )
    # The outer loop's element is read before the inner loop and after it.
    first = _put("outer.first", join("first/", Field(Item(), "name")))
    last = _put("outer.last", join("last/", Field(Item(), "name"), Result("outer.first", "etag")))
    outer = ForEach(
        name="outer.each",
        items=LISTS,
        body=Graph((first, inner, last)),
        collect={"name": Field(Item(), "name"), "parts": Result("outer.inner", "items")},
        max_concurrency=2,
    )
    return Workflow(
        name="loops", graph=Graph((outer,)), outputs={"items": Result("outer.each", "items")}
    )


def _silent(_: object) -> None:
    """Nobody watches."""


def test_loops_nest_on_every_driver(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    made, calls = _nested(), []
    expected = [
        {"name": "a", "parts": [{"key": "1"}, {"key": "2"}]},
        {"name": "b", "parts": []},
        {"name": "c", "parts": [{"key": "3"}]},
    ]
    runs: list[Callable[[], Followed]] = [
        lambda: direct_runs.follow(
            aws, made, {}, "direct", _silent, workspace=f"s3://{BUCKET}/work"
        ),
        lambda: executions.follow(aws, made, {}, "states", _silent),
        lambda: dag_runs.follow(aws, made, {}, "dag", _silent, airflow),
    ]
    for run in runs:
        before = len(aws.calls())
        followed = run()
        assert followed.state == "succeeded", followed.cause
        assert followed.outputs == {"items": expected}
        keys = (c.request["Key"] for c in aws.calls()[before:] if c.operation == "PutObject")
        calls.append(Counter(key for key in keys if not key.startswith("work/")))

    assert calls[0] == calls[1] == calls[2]
    assert sum(calls[0].values()) == 2 * 3 + 3
