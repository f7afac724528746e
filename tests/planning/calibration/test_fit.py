"""The fit: the coefficients are its result, and it generalises to sources it has not seen."""

from __future__ import annotations

from types import ModuleType

import pytest

from orchestration.planning.calibration.scores import grouped, headline, scores
from orchestration.planning.cost.coefficients import facts
from tests.planning.calibration.fit_tool import load_fit

pytest.importorskip("scipy")


@pytest.fixture(scope="module")
def fit() -> ModuleType:
    return load_fit()


@pytest.mark.slow
def test_coefficients_are_what_the_fit_finds(fit: ModuleType) -> None:
    rows = fit.samples(fit.ROWS)
    values = fit.fit(rows)
    known = {name: fact for name, fact in facts().items() if not name.startswith("interval")}
    for name, fact in known.items():
        assert values[name] == pytest.approx(fact.value, rel=0.02), name


@pytest.mark.slow
@pytest.mark.thorough
def test_sources_not_seen_are_predicted(fit: ModuleType) -> None:
    """Every source is predicted by coefficients fitted without it."""
    rows = fit.samples(fit.ROWS)
    left_out = fit.cross_validate(
        rows, {name: fact.value for name, fact in facts().items()}, fit.source
    )
    results = scores(headline(left_out))
    assert results.time_mape <= 0.08
    assert results.time_median <= 0.05
    assert results.time_within_20 >= 0.90
    assert results.pairs_right >= 0.83
    assert results.regret_mean <= 0.03
    assert results.memory_mape <= 0.08
    assert results.fit_recall >= 0.95
    assert 0.74 <= results.interval_holds <= 0.86
    apart = grouped([row for row in left_out if not row.noisy], lambda row: row.regime)
    assert all(apart[name].time_mape <= 0.15 for name in ("bits", "experts", "offload", "neuron"))


def test_few_publications_widen_the_interval_of_memory(fit: ModuleType) -> None:
    """Student's t of one publication more: 3.08 times a spread of which there are two values."""
    few, many = ([(0.1, str(name)) for name in range(number)] for number in (2, 200))
    assert fit._of_another(few) == pytest.approx(0.1 * 3.078 * (3 / 2) ** 0.5, rel=1e-3)
    assert fit._of_another(many) == pytest.approx(0.1 * 1.286, rel=1e-2)
    assert fit._of_another(few[:1]) == float("inf")


def test_without_rows_a_coefficient_is_what_was_known_before(fit: ModuleType) -> None:
    rows = [row for row in fit.samples(fit.ROWS) if row.regime == "data"][:40]
    values = fit.fit(rows, {name: fact.value for name, fact in facts().items()})
    for name in ("matmul_neuron", "expert_layer_ms", "fragmentation"):
        assert values[name] == facts()[name].prior
