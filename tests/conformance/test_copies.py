"""A copy in S3 whose bytes are other than the source's fails the stage on every driver."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestration import DataStaging, Pipeline, S3Destination, parameter
from orchestration.local import EmbeddedAws, Fault
from orchestration.local.airflow import LocalAirflow
from orchestration.local.run import run
from tests.conformance import pipelines
from tests.conformance.test_conformance import BACKENDS

pytestmark = pytest.mark.slow


def copying(**destination: Any) -> Pipeline:
    staging = DataStaging(
        name="staging", source=parameter("data"), destination=S3Destination(**destination)
    )
    return pipelines.pipeline("copying", staging)


def test_a_copy_of_other_bytes_is_named(tmp_path: Path, airflow: LocalAirflow) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("one.csv", "two.csv"):
        (folder / name).write_text(name)
    given = pipelines.PARAMETERS
    causes = set()
    with EmbeddedAws(time_scale=0.005) as aws:
        for backend in BACKENDS:
            aws.inject(Fault.damage("two.csv"))
            report = run(
                copying(),
                on=backend,
                parameters=given,
                aws=aws,
                uploads={given["data"]: folder},
                airflow=airflow,
            )
            assert (report.state, report.error) == ("failed", "StagedDataDiffers")
            causes.add(str(report.cause).rpartition("/")[2])
            looks = [c for c in report.calls if c.operation == "HeadObject"]
            assert {c.request["ChecksumMode"] for c in looks} == {"ENABLED"}
            assert len(looks) == 2
    assert causes == {"two.csv 7"}
