"""Shapes from a few numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestration.planning.model.shapes import ModelError
from orchestration.planning.model.typical_shapes import of_size, transformer


def test_a_few_numbers_make_llama() -> None:
    shape = transformer(layers=32, hidden=4096, heads=32, vocabulary=32000)
    assert shape.parameters == 6_738_415_616
    assert not shape.approximate


def test_a_few_numbers_have_to_fit() -> None:
    with pytest.raises(ModelError, match="4096 is not a multiple of 33 heads"):
        transformer(layers=32, hidden=4096, heads=33, vocabulary=32000)


@given(st.integers(1_000_000, 2_000_000_000_000))
def test_a_guess_keeps_the_number_of_parameters(parameters: int) -> None:
    shape = of_size(parameters)
    assert shape.parameters == parameters
    assert shape.approximate
    assert shape.hidden % shape.heads == 0
    assert abs(shape.other_parameters) < 0.05 * parameters
    assert shape.training_flops_per_token(1) == pytest.approx(6 * parameters, rel=0.1)


@pytest.mark.parametrize(
    ("parameters", "layers", "hidden"),
    [(6.7e9, 32, 4096), (13e9, 40, 5120), (70e9, 80, 8192), (175e9, 96, 12288)],
)
def test_a_guess_is_near_published_models(parameters: float, layers: int, hidden: int) -> None:
    shape = of_size(parameters)
    assert shape.layers == pytest.approx(layers, rel=0.2)
    assert shape.hidden == pytest.approx(hidden, rel=0.2)


def test_too_few_parameters_are_refused() -> None:
    with pytest.raises(ModelError, match="70 parameters are too few"):
        of_size(70)
