"""AliNet's relation loss: triples of one relation differ alike."""

import numpy as np
import torch
from torch import Tensor, nn

from emea.data.arrays import IntArray
from emea.encoders.sparse_pattern import SparsePattern


class RelationConsistency(nn.Module):
    """How far ``h - t`` lies from its relation's direction, over all triples.

    With m the mean of ``h - t`` over a relation's triples and r = m / |m|, the loss is the
    relation's mean of ``|h - t - r|^2``, summed over relations. It is evaluated as
    ``mean |h - t|^2 - 2 m.r + r.r``, so no tensor of triples x dimension exists.

    Args:
        triples: ``[num_triples, 3]`` head, relation, tail.
        num_entities: entities.
        num_relations: relations.
    """

    end_signs: Tensor
    pair_shares: Tensor
    entity_shares: Tensor

    def __init__(self, triples: IntArray, num_entities: int, num_relations: int) -> None:
        super().__init__()
        head, relation, tail = triples[np.argsort(triples[:, 1], kind="stable")].T
        share = (1 / np.bincount(relation, minlength=num_relations).clip(1))[relation]
        ends = np.stack([head, tail], axis=1).ravel()
        signs = np.stack([share, -share], axis=1).ravel()
        self.ends = SparsePattern(np.repeat(relation, 2), ends, (num_relations, num_entities))
        order = np.argsort(head, kind="stable")
        self.pairs = SparsePattern(head[order], tail[order], (num_entities, num_entities))
        shares = np.bincount(ends, np.abs(signs), minlength=num_entities)
        for name, values in (
            ("end_signs", signs),
            ("pair_shares", share[order]),
            ("entity_shares", shares),
        ):
            self.register_buffer(name, torch.from_numpy(values), persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        """The loss of these embeddings."""
        dtype = rows.dtype
        means = self.ends.weighted_sum(self.end_signs.to(dtype), rows)
        directions = nn.functional.normalize(means)
        tails = self.pairs.weighted_sum(self.pair_shares.to(dtype), rows)
        squares = self.entity_shares.to(dtype) @ rows.square().sum(1) - 2 * (rows * tails).sum()
        return squares + (directions * (directions - 2 * means)).sum()
