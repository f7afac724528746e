"""No prediction of a wide sweep breaks a law of physics or arithmetic.

`make laws` tries 60,000 predictions; here is a sample of them.
"""

from __future__ import annotations

import os
from functools import cache

import pytest

from orchestration.planning.cost.devices import device
from orchestration.planning.cost.prediction import Prediction, predict
from orchestration.planning.model.configuration import Configuration
from tests.planning.cost.laws import LAWS, sweep

_COUNT = int(os.environ.get("LAWS_CONFIGURATIONS", "100"))
_ROUNDING = 1e-9


@cache
def predictions() -> list[tuple[Configuration, Prediction]]:
    return [(c, predict(c)) for c in sweep(_COUNT)]


@pytest.mark.parametrize("name", LAWS)
def test_no_prediction_breaks_a_law(name: str) -> None:
    law, tried = LAWS[name], 0
    for c, before in predictions():
        changed = law.change(c)
        if changed is None:
            continue
        tried += 1
        less, more = law.at_most(before, before if changed is c else predict(changed))
        assert less <= more * (1 + _ROUNDING) + _ROUNDING, (c, changed)
    assert tried > _COUNT / 50


def test_no_device_computes_faster_than_its_peak() -> None:
    for c, prediction in predictions():
        d = device(c.machine.accelerator)
        peak = max(d.peak_tflops, (c.narrow and d.fp8_tflops) or 0.0) * 1e12
        work = c.tokens * c.model.forward_flops_per_token(c.sequence, causal=True)
        passes = 2 if c.trainable is not None else 3
        assert work * passes <= peak * c.machine.devices * prediction.step_time_s


def test_the_sweep_is_wide() -> None:
    configurations = sweep(2000)
    assert min(c.model.parameters for c in configurations) < 2e8
    assert max(c.model.parameters for c in configurations) > 1e12
    assert {c.sequence for c in configurations} == {2**power for power in range(9, 21)}
    assert {c.machine.devices for c in configurations} >= {2**power for power in range(13)}
    assert max(c.machine.devices for c in configurations) == 16384
