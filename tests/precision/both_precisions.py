"""One function in both precisions: what single precision costs, and what it may cost."""

import copy
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from emea.matching.similarity import Similarity

ROUNDOFF = 2.0**-24
"""Largest relative error of one operation in single precision.

A sum of n terms, in any order, is off by at most n times this, of the sum of their magnitudes.
"""

SUBNORMAL = 1e-37
"""Numbers below this lose digits in single precision, and at last become 0."""

Result = TypeVar("Result")


def in_precision(value: Any, dtype: torch.dtype) -> Any:
    """The same with every floating-point tensor in it, however deep, in another precision."""
    if isinstance(value, Tensor):
        return value.to(dtype) if value.is_floating_point() else value
    if isinstance(value, nn.Module):
        return copy.deepcopy(value).to(dtype)
    if is_dataclass(value) and not isinstance(value, type):
        parts = {part.name: getattr(value, part.name) for part in fields(value)}
        return replace(value, **in_precision(parts, dtype))
    if isinstance(value, dict):
        return {name: in_precision(part, dtype) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(in_precision(part, dtype) for part in value)
    return value


def both(function: Callable[..., Result], *given: Any) -> tuple[Result, Result]:
    """What a function makes of the same numbers in single and in double precision.

    The numbers are rounded to single precision first: their rounding is no fault of the function.
    """
    rounded = in_precision(given, torch.float32)
    return function(*rounded), function(*in_precision(rounded, torch.float64))


def assert_near(
    single: Tensor,
    double: Tensor,
    relative: Tensor | float = 0.0,
    absolute: Tensor | float = 0.0,
) -> None:
    """Numbers everywhere, infinite ones at the same places, others no farther than allowed."""
    single, double = single.double(), double.double()
    assert single.shape == double.shape
    assert not single.isnan().any()
    infinite = double.isinf()
    assert torch.equal(single[infinite], double[infinite])
    allowed = relative * double.abs() + absolute + SUBNORMAL
    share = (
        ((single - double).abs() / allowed)[~infinite].max().item()
        if len(double)
        else 0.0
    )
    assert share <= 1, f"{share:.3g} times the error that is allowed"


def all_scores(similarity: Similarity) -> Tensor:
    return similarity.scores(torch.arange(similarity.num_source))
