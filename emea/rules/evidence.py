"""What one pair of matched neighbours says for a mapping."""

import torch
from torch import Tensor

SURE = 1 - 1e-7
"""Largest probability of one piece of evidence, so that its logarithm stays finite."""


def log_doubt(
    source_in_target: Tensor,
    target_in_source: Tensor,
    source_functionality: Tensor,
    target_functionality: Tensor,
    prob: Tensor,
) -> Tensor:
    """Log of the two factors that r(e, n) and r'(e', n') contribute to the noisy-or of PARIS.

    That is Eq. 13 of PARIS, Eq. 19 of EMEA: ``1 - Pr(r' in r) fun^-1(r) Pr(n = n')`` and the
    same with the sides exchanged.

    Args:
        source_in_target: Pr(r in r').
        target_in_source: Pr(r' in r).
        source_functionality: fun^-1(r).
        target_functionality: fun^-1(r').
        prob: Pr(n = n').
    """
    by_source = target_in_source * source_functionality * prob
    by_target = source_in_target * target_functionality * prob
    return torch.log1p(-by_source.clamp(max=SURE)) + torch.log1p(-by_target.clamp(max=SURE))
