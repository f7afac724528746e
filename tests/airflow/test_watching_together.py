"""Runs whose stages go through a list together, as ``watch`` learns of them from Airflow's API."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from orchestration import Pipeline
from orchestration.backends.airflow.spec import PERFORMED
from orchestration.direct.stages import stage_state
from orchestration.runs.airflow import Api, DagRuns
from orchestration.runs.airflow.operating import DagRun
from tests.conformance.test_afterwards import tells
from tests.pipeline.test_nesting import written

MARKET: dict[str, Any] = {
    "name": "market",
    "workspace": "s3://together/runs",
    "parameters": {"market": {}},
    "stages": {
        "fetch": tells({"parameter": "market"}),
        "tell": {**tells("told"), "after": ["fetch"]},
    },
}
OUTER: dict[str, Any] = {
    "name": "together",
    "region": "us-east-1",
    "workspace": "s3://together/runs",
    "parameters": {"markets": {"type": "array", "default": ["de", "it"]}},
    "stages": {
        "each": {
            "kind": "pipeline",
            "file": "market.yaml",
            "for_each": {"items": {"parameter": "markets"}, "at_most": 1000},
            "parameters": {"market": {"each": "item"}},
        },
    },
}
BEGUN = "2026-01-01T00:00:00Z"
WELL = {"each_fetch.call": "success", "each_tell.call": "success"}
BROKEN = {"each_fetch.call": "success", "each_tell.call": "failed"}


class Server(ThreadingHTTPServer):
    """The answers of Airflow's API server about one run, as its reference tells them.

    https://airflow.apache.org/docs/apache-airflow/stable/stable-rest-api-ref.html
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.state = "running"
        self.instances: list[dict[str, Any]] = []
        self.left: dict[int, dict[str, str]] = {}
        """What the instances have left, by their index."""
        self.lost = False
        """Whether what is listed is gone when it is asked for."""
        self.asked: list[str] = []

    def say(self, state: str, *instances: str) -> None:
        """Let the run and the instances of its task be in these states."""
        self.state = state
        self.instances = [
            {"id": f"{i}-{each}", "task_id": "each.each", "map_index": i, "state": each}
            | {"try_number": 1, "start_date": BEGUN, "end_date": BEGUN}
            for i, each in enumerate(instances)
        ]

    def answer(self, path: str, query: dict[str, str]) -> dict[str, Any] | None:
        self.asked.append(path)
        if "/xcomEntries/" in path:
            value = self.left.get(int(query["map_index"]))
            return None if self.lost or value is None else {"value": value}
        if path.endswith("/xcomEntries"):
            entries = [
                {"task_id": "each.each", "map_index": i, "key": key_of(left)}
                for i, left in self.left.items()
                if query["xcom_key_pattern"] in key_of(left)
            ]
            return page("xcom_entries", entries, query)
        if path.endswith("/taskInstances"):
            return page("task_instances", self.instances, query)
        if "/logs/" in path:
            return {"content": [], "continuation_token": None}
        times = {"start_date": BEGUN, "end_date": None, "run_after": BEGUN}
        return {**times, "conf": {}, "state": self.state}


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        query = {name: value for name, [value] in parse_qs(place.query).items()}
        said = self.server.answer(unquote(place.path), query)
        content = json.dumps(said or {"detail": "XCom entry not found"}).encode()
        self.send_response(404 if said is None else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        pass


def page(key: str, entries: list[dict[str, Any]], query: dict[str, str]) -> dict[str, Any]:
    begin = int(query["offset"])
    return {key: entries[begin : begin + int(query["limit"])], "total_entries": len(entries)}


def key_of(left: dict[str, str]) -> str:
    return PERFORMED + "-".join(left.values())


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture
def watched(server: Server, tmp_path: Path) -> DagRun:
    pipeline = Pipeline.load(written(tmp_path, market=MARKET, outer=OUTER))
    api = Api(f"http://127.0.0.1:{server.server_port}", "token")
    return DagRuns("together", api).watched(pipeline, "r")


def states(watched: DagRun) -> tuple[str, str]:
    seen = watched.look()
    fetch, tell = (
        stage_state(stage, seen.steps, seen.state, to_come=seen.to_come)
        for stage in ("each_fetch", "each_tell")
    )
    return fetch, tell


@pytest.mark.parametrize("between", ["up_for_retry", "queued"])
def test_what_a_failed_attempt_has_left_is_not_taken_for_that_of_the_next(
    server: Server, watched: DagRun, between: str
) -> None:
    # Airflow gives an instance another id when its attempt fails or is cleared, and deletes what
    # the attempt has left when the next one begins.
    server.left = {0: BROKEN}
    server.say("running", between)
    assert states(watched) == ("waiting", "waiting")
    server.left = {}
    server.say("running", "running")
    assert states(watched) == ("waiting", "waiting")
    server.left = {0: WELL}
    server.say("success", "success")
    server.instances[0]["id"] = f"0-{between}"
    assert states(watched) == ("succeeded", "succeeded")


def test_a_failed_run_that_is_started_again_is_what_its_last_attempt_has_left(
    server: Server, watched: DagRun
) -> None:
    server.left = {0: BROKEN}
    server.say("failed", "failed")
    assert states(watched) == ("succeeded", "failed")
    server.say("running", "queued")
    assert states(watched) == ("waiting", "waiting")
    server.left = {0: WELL}
    server.say("success", "success")
    assert states(watched) == ("succeeded", "succeeded")


def test_what_is_gone_before_it_is_read_is_nothing_and_read_by_the_next_look(
    server: Server, watched: DagRun
) -> None:
    server.left = {0: BROKEN}
    server.say("running", "failed")
    server.lost = True
    assert states(watched) == ("waiting", "waiting")
    server.lost = False
    assert states(watched) == ("succeeded", "failed")


def test_stages_go_on_until_the_last_element_has_ended(server: Server, watched: DagRun) -> None:
    server.left = {0: WELL}
    server.say("running", "success", "running")
    assert states(watched) == ("running", "running")
    server.say("running", "success", "scheduled")
    assert states(watched) == ("running", "running")
    server.left = {0: WELL, 1: BROKEN}
    server.say("failed", "success", "failed")
    assert states(watched) == ("succeeded", "failed")


def test_a_thousand_elements_are_read_in_few_requests(server: Server, watched: DagRun) -> None:
    skipping = {"each_fetch.call": "success"}
    server.left = dict.fromkeys(range(1000), skipping)
    server.say("success", *["success"] * 1000)
    server.asked.clear()
    assert states(watched) == ("succeeded", "skipped")
    # The run, ten pages of instances, as many of what they have left, and that once.
    assert len(server.asked) == 22
    server.left[999] = WELL
    server.asked.clear()
    assert states(watched) == ("succeeded", "succeeded")
    assert len(server.asked) == 22
