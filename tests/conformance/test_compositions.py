"""Pipelines put together at random end alike on every driver, having done the same.

`COMPOSITIONS=200 pytest tests/conformance/test_compositions.py` tries more of them.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator

import pytest

from orchestration import Pipeline
from orchestration.local import EmbeddedAws
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import run
from orchestration.local.run.report import RunReport
from tests.conformance import normal
from tests.conformance.compositions import composition, parameters
from tests.conformance.test_conformance import BACKENDS

pytestmark = pytest.mark.slow

NUMBERS = range(int(os.environ.get("COMPOSITIONS", "8")))
# Loops without a job, whose threads read what an earlier task left.
LOOPS = (205, 213)
_TOKEN = re.compile(r'(?<="ClientRequestToken": ")[0-9a-f]+')


@pytest.fixture(scope="module")
def aws() -> Iterator[EmbeddedAws]:
    with EmbeddedAws(time_scale=0.001) as embedded:
        embedded.client("sns").create_topic(Name="news")
        embedded.client("s3").create_bucket(Bucket="bucket")
        yield embedded


def calls(report: RunReport) -> Counter[str]:
    """Return what a run has changed; tokens are derived from its identity."""
    sent: Counter[str] = Counter()
    for call, count in normal.changes(report.calls).items():
        sent[_TOKEN.sub("<token>", call)] += count
    return sent


def stages(report: RunReport) -> dict[str, str]:
    """Return the states of the stages before the end, whose outputs show what was skipped."""
    return {s.name: s.state for s in report.stages if not s.name.endswith("_note")}


@pytest.mark.parametrize("number", [*NUMBERS, *LOOPS])
def test_a_composition_means_the_same_everywhere(
    number: int, aws: EmbeddedAws, airflow: LocalAirflow
) -> None:
    pipeline, values = Pipeline.parse(composition(number)), parameters(number)
    first, *others = (
        run(pipeline, on=on, aws=aws, airflow=airflow, parameters=values, run_id=f"{number}-{on}")
        for on in BACKENDS
    )
    assert first.state == "succeeded" or first.error == "SourceNotUsable"
    for other in others:
        assert (other.state, other.error) == (first.state, first.error)
        assert normal.anonymous(other.cause) == normal.anonymous(first.cause)
        assert normal.anonymous(other.outputs) == normal.anonymous(first.outputs)
        # Where a run fails, what stands beside the failure may or may not have begun.
        if first.state == "succeeded":
            assert calls(other) == calls(first)
            assert stages(other) == stages(first)
