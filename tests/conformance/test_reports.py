"""A report that is broken ends every driver alike: by a name, with the key, the step and the file.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from orchestration.expressions import Result, join, parameter
from orchestration.graph import MAX_REPORT_BYTES, Graph, Output, ParameterSpec, Read, Workflow
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import dag_runs, direct_runs, executions

pytestmark = pytest.mark.slow

BUCKET = "reports"
GOOD = '{"metrics": {"score": 0.5}'


def _score(value: str) -> bytes:
    return f'{{"metrics": {{"score": {value}}}}}'.encode()


def _padded(size: int) -> bytes:
    """A report of a size, with as many characters that JSON escapes as it can have."""
    start = GOOD + ', "notes": ["'
    return (start + '","' * ((size - len(start) - 3) // 3)).encode().ljust(size - 3, b"x") + b'"]}'


REPORTS: dict[str, tuple[bytes | None, str | float]] = {
    "good": (_score("0.5"), 0.5),
    "an-integer": (_score("3"), 3),
    "negative-zero": (_score("-0.0"), 0),
    "a-duplicate": (b'{"metrics": {"score": 0.5, "score": 0.7}}', 0.7),
    "a-large-integer": (_score("123456789012345678901234567890"), 1.2345678901234568e29),
    "nan-elsewhere": (b'{"metrics": {"score": 0.5, "loss": NaN, "all": [NaN, -Infinity]}}', 0.5),
    "nan-in-a-note": (b'{"metrics": {"score": 0.5}, "note": "ended: NaN, so stopped"}', 0.5),
    "a-lone-surrogate": ((GOOD + ', "n": "\\ud83d"}').encode(), 0.5),
    "the-largest": (_padded(MAX_REPORT_BYTES), 0.5),
    "absent": (None, "ReportMissing"),
    "too-large": (_padded(MAX_REPORT_BYTES + 1), "ReportNotUsable"),
    "400-kilobytes": (_padded(400_000), "ReportNotUsable"),
    "empty": (b"", "ReportNotUsable"),
    "not-json": (b"hello", "ReportNotUsable"),
    "cut-off": (b'{"metrics": {"score": 0.', "ReportNotUsable"),
    "single-quotes": (b"{'metrics': {'score': 0.5}}", "ReportNotUsable"),
    "something-behind-it": (_score("0.5") + b" x", "ReportNotUsable"),
    "a-byte-order-mark": (b"\xef\xbb\xbf" + _score("0.5"), "ReportNotUsable"),
    "latin-1": (GOOD.encode() + b', "n": "\xe9"}', "ReportNotUsable"),
    "utf-16": (_score("0.5").decode().encode("utf-16"), "ReportNotUsable"),
    "a-raw-control-character": (GOOD.encode() + b', "n": "\x00"}', "ReportNotUsable"),
    "beyond-64-bits": (_score("1e999"), "ReportNotUsable"),
    "a-list": (b"[" + _score("0.5") + b"]", "ReportNotUsable"),
    "a-number": (b"3", "ReportNotUsable"),
    "null-itself": (b"null", "ReportNotUsable"),
    "no-metric": (b'{"metrics": {}}', "MetricMissing"),
    "no-metrics": (b"{}", "MetricMissing"),
    "a-list-of-metrics": (b'{"metrics": [{"score": 0.5}]}', "MetricMissing"),
    "text-for-metrics": (b'{"metrics": "score"}', "MetricMissing"),
    "nan": (_score("NaN"), "MetricNotFinite"),
    "infinity": (_score("-Infinity"), "MetricNotFinite"),
    "nan-in-quotes": (_score('"NaN"'), "MetricNotNumber"),
    "text": (_score('"0.5"'), "MetricNotNumber"),
    "a-boolean": (_score("true"), "MetricNotNumber"),
    "null": (_score("null"), "MetricNotNumber"),
    "a-list-of-numbers": (_score("[1]"), "MetricNotNumber"),
    "an-object": (_score("{}"), "MetricNotNumber"),
}
ON_AIRFLOW = ("good", "absent", "too-large", "empty", "nan", "no-metric")
"""Airflow's tasks and the direct driver perform the same code."""


@dataclass(frozen=True)
class Ended:
    state: str
    error: str | None
    cause: str | None
    outputs: Any


def _workflow(not_finite: str = "refused") -> Workflow:
    score = Output(("metrics", "score"), kind="number", not_finite=not_finite)  # type: ignore[arg-type]  # one of two words
    read = Read(
        name="judge.report",
        uri=join(f"s3://{BUCKET}/", parameter("key")),
        outputs={"score": score},
    )
    return Workflow(
        name="reports",
        graph=Graph((read,)),
        outputs={"score": Result("judge.report", "score")},
        parameters=(ParameterSpec(name="key"),),
    )


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.002) as embedded:
        s3 = embedded.client("s3")
        s3.create_bucket(Bucket=BUCKET)
        for key, (body, _) in REPORTS.items():
            if body is not None:
                s3.put_object(Bucket=BUCKET, Key=key, Body=body)
        yield embedded


def _on_step_functions(aws: EmbeddedAws, made: Workflow, key: str) -> Ended:
    return _ended(
        executions.follow(aws, made, {"key": key}, f"states-{key}-{uuid.uuid4().hex[:6]}", _silent)
    )


def _directly(aws: EmbeddedAws, made: Workflow, key: str) -> Ended:
    workspace = f"s3://{BUCKET}/work"
    run_id = f"direct-{key}-{uuid.uuid4().hex[:6]}"
    return _ended(direct_runs.follow(aws, made, {"key": key}, run_id, _silent, workspace=workspace))


def _silent(_: object) -> None:
    """Nobody watches."""


def _ended(followed: Any) -> Ended:
    return Ended(followed.state, followed.error, followed.cause, followed.outputs)


@pytest.mark.parametrize("key", REPORTS)
def test_a_report_ends_alike_directly_and_as_a_state_machine(aws: EmbeddedAws, key: str) -> None:
    made = _workflow()
    direct = _directly(aws, made, key)
    assert direct == _on_step_functions(aws, made, key)
    expected = REPORTS[key][1]
    if isinstance(expected, str):
        assert direct.error == expected
        assert f"s3://{BUCKET}/{key}" in str(direct.cause)
        assert "judge.report" in str(direct.cause)
        assert not expected.startswith("Metric") or "metrics.score" in str(direct.cause)
    else:
        assert (direct.state, direct.outputs) == ("succeeded", {"score": expected})


def test_what_airflow_makes_of_reports_is_the_same(aws: EmbeddedAws, airflow: LocalAirflow) -> None:
    made = _workflow()
    for key in ON_AIRFLOW:
        followed = dag_runs.follow(aws, made, {"key": key}, f"dag-{key}", _silent, airflow)
        assert _ended(followed) == _directly(aws, made, key)


@pytest.mark.parametrize("key", ["nan", "infinity"])
def test_a_step_may_take_what_is_not_finite_for_null(aws: EmbeddedAws, key: str) -> None:
    made = _workflow("null")
    assert _directly(aws, made, f"{key}").outputs == {"score": None}
    assert json.dumps(_on_step_functions(aws, made, key).outputs) == '{"score": null}'
