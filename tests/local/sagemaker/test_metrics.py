"""The metrics of a training job, read out of its log as SageMaker keeps them."""

from __future__ import annotations

import datetime

import pytest

from orchestration.execution.reading.metrics import final_metrics

AT = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)


def last(pattern: str, log: str) -> float | None:
    """Return the value that a job ends with, if it has one."""
    metrics = final_metrics([{"Name": "it", "Regex": pattern}], log, AT)
    assert [each["MetricName"] for each in metrics] == ["it"] * len(metrics)
    return metrics[0]["Value"] if metrics else None


@pytest.mark.parametrize(
    ("pattern", "log", "expected"),
    [
        ("loss=([0-9.]+)", "loss=2\nloss=0.5\n", 0.5),
        ("loss=(.*?);", "loss=1e-2;", pytest.approx(0.01, rel=1e-7)),
        (r"(?<=n )-?\d+", "n -7", -7),
        ("loss=(.*)", "accuracy=1", None),
        ("loss=(.*)", "loss=high", None),
        # CloudWatch takes neither, so the last value is the one before.
        ("loss=(.*)", "loss=0.25\nloss=nan\nloss=-inf\n", 0.25),
        ("loss=(.*)", "loss=nan", None),
        ("loss=(.*)", "loss=1e39", None),
    ],
)
def test_the_last_match_that_is_a_number_counts(
    pattern: str, log: str, expected: float | None
) -> None:
    assert last(pattern, log) == expected


def test_values_have_32_bits_as_recorded_ones_have() -> None:
    assert last("accuracy=(.*)", "accuracy=0.8792") == 0.8791999816894531
    assert last("loss=(.*)", "loss=0.0036") == 0.003599999938160181
