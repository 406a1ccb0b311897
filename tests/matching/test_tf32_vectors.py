"""Vectors rounded to TF32, compared with rounding by fractions."""

import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from emea.matching import tf32_vectors as module
from emea.matching.tf32_vectors import rounded_to_tf32, tf32_vectors

NUMBERS = st.floats(width=32, min_value=-(2.0**120), max_value=2.0**120, allow_subnormal=False)


def nearest(number: float) -> tuple[Fraction, Fraction]:
    """The distance of the nearest number with 11 significant bits, and that number's unit."""
    if not number:
        return Fraction(0), Fraction(1)
    unit = Fraction(2) ** (math.frexp(number)[1] - 11)
    scaled = Fraction(number) / unit
    return abs(scaled - round(scaled)) * unit, unit


@given(NUMBERS)
def test_numbers_are_rounded_to_the_nearest(number: float) -> None:
    rounded = rounded_to_tf32(torch.tensor([number])).item()
    distance, unit = nearest(number)
    assert abs(Fraction(rounded) - Fraction(number)) == distance
    assert (Fraction(rounded) / unit).denominator == 1


@pytest.mark.parametrize("length", [1e-3, 1.0, 1e5])
def test_bounds_of_lengths_and_errors(length: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.BLOCK_BYTES, "cpu", 4 * 37 * 10)
    vectors = length * torch.randn(45, 37, generator=torch.Generator().manual_seed(0))
    found = tf32_vectors(vectors)
    assert found.values.shape == (45, 40)
    assert not found.values[:, 37:].any()
    rounded = found.values[:, :37].double()
    errors, lengths = (vectors.double() - rounded).norm(dim=1), vectors.double().norm(dim=1)
    assert (errors < found.errors).all() and (found.errors < 1.01 * errors).all()
    assert (lengths < found.lengths).all() and (found.lengths < 1.01 * lengths).all()
    assert (errors < 2**-11 * lengths).all()


def test_numbers_of_tf32_stay_the_same() -> None:
    vectors = torch.tensor([[1.0, -0.5, 0.0, 1 + 2**-10]])
    found = tf32_vectors(vectors)
    assert torch.equal(found.values[:, :4], vectors)
    assert found.errors.item() == pytest.approx(module.LEAST_ERROR)
