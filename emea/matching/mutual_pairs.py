"""Pairs of entities that choose each other."""

import torch
from torch import Tensor

from emea.matching.candidates import mutual_best, top_candidates
from emea.matching.similarity import Similarity


def mutual_pairs(similarity: Similarity) -> Tensor:
    """``[num_pairs, 2]`` source and target entities each of which is the other's best."""
    forward = top_candidates(similarity, 1)
    mutual = mutual_best(forward, top_candidates(similarity.reversed(), 1))
    sources = mutual.nonzero().squeeze(1)
    return torch.stack([sources, forward.targets[sources, 0]], dim=1)
