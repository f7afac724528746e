"""What the tests of several drivers share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestration.local.airflow import LocalAirflow


@pytest.fixture(scope="module")
def airflow() -> Iterator[LocalAirflow]:
    with LocalAirflow() as started:
        yield started
