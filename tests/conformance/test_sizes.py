"""What an execution of Step Functions can't carry fails alike on every driver."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from orchestration.expressions import Field, Item, Result
from orchestration.graph import Call, ForEach, Graph, Operation, Output, Workflow
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import dag_runs, direct_runs, executions
from orchestration.local.run.report import Followed

pytestmark = pytest.mark.slow

BUCKET = "sizes"
LONG = "k" * 900


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.002) as embedded:
        s3 = embedded.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        keys = [f"{size}/{n:03}{LONG}" for size, count in SIZES.items() for n in range(count)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda key: s3.put_object(Bucket=BUCKET, Key=key, Body=b""), keys))
        yield embedded


SIZES = {"few": 100, "many": 300}
"""Objects under a prefix; each has 903 characters in its key, and as many bytes around it."""


def _listing(size: str) -> Call:
    request = {"Bucket": BUCKET, "Prefix": f"{size}/"}
    contents = Output(("Contents",), kind="list", columns=("Key",), texts=("Key",))
    return Call(
        name="staging.list",
        operation=Operation("s3", "ListObjectsV2", request),
        outputs={"objects": contents},
    )


def _looping(characters: int) -> Workflow:
    head = Operation("s3", "HeadObject", {"Bucket": BUCKET, "Key": Field(Item(), "Key")})
    loop = ForEach(
        name="staging.each",
        items=Result("staging.list", "objects"),
        body=Graph((Call(name="staging.head", operation=head),)),
        collect={"key": Field(Item(), "Key"), "text": "x" * characters},
        max_concurrency=10,
    )
    return Workflow(
        name="sizes",
        graph=Graph((_listing("few"), loop)),
        outputs={"items": Result("staging.each", "items")},
    )


def _ends(aws: EmbeddedAws, airflow: LocalAirflow, made: Workflow, run: str) -> dict[str, Followed]:
    def silent(_: Any) -> None:
        """Nobody watches."""

    place = f"s3://{BUCKET}/work"
    return {
        "direct": direct_runs.follow(aws, made, {}, f"{run}-d", silent, workspace=place),
        "airflow": dag_runs.follow(aws, made, {}, f"{run}-a", silent, airflow),
        "step-functions": executions.follow(aws, made, {}, f"{run}-s", silent),
    }


def test_a_listing_within_the_limit_goes_on(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    made = Workflow(name="sizes", graph=Graph((_listing("few"),)))
    ends = _ends(aws, airflow, made, "few")
    assert {end.state for end in ends.values()} == {"succeeded"}, ends


def test_a_response_over_the_limit(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    made = Workflow(name="sizes", graph=Graph((_listing("many"),)))
    ends = _ends(aws, airflow, made, "many")
    assert {(end.error, end.cause) for end in ends.values()} == {
        (
            "DataLimitExceeded",
            "ListObjectsV2 staging.list: the response has more than 262144 bytes, the most that "
            "Step Functions carries; ask for less at a time",
        )
    }, ends


@pytest.mark.parametrize(("characters", "fits"), [(1_000, True), (2_000, False)])
def test_results_of_a_loop(
    aws: EmbeddedAws, airflow: LocalAirflow, characters: int, fits: bool
) -> None:
    ends = _ends(aws, airflow, _looping(characters), f"loop-{characters}")
    if fits:
        assert {end.state for end in ends.values()} == {"succeeded"}, ends
        return
    assert {(end.error, end.cause) for end in ends.values()} == {
        (
            "DataLimitExceeded",
            "staging.each: the results have more than 262144 bytes, the most that Step Functions "
            "carries; keep less of each element, or loop over fewer",
        )
    }, ends
