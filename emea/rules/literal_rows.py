"""Matched literal values as additional rows of matchings and tables, for use by the rules."""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from emea.data.arrays import NO_MATCH
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, LiteralMatches
from emea.matching.beliefs import Matching
from emea.matching.many_matching import ManyMatching
from emea.matching.pair_table import PairTable, widened


class LiteralRows:
    """Extends matchings and tables of entities by the matched literal values.

    Values follow the entities in the extended graphs. Their matches are fixed: no evidence changes
    them.

    Args:
        matches: The values that match.
        num_source: Number of entities of the source graph.
        num_target: Number of entities of the target graph.
        device: Where to compute.
    """

    def __init__(
        self,
        matches: LiteralMatches,
        num_source: int,
        num_target: int,
        device: torch.device | str = "cpu",
    ) -> None:
        self.num_source = num_source
        self.num_target = num_target
        self.num_all_target = matches.target.num_entities
        pairs = torch.from_numpy(matches.pairs - [num_source, 0]).to(device)
        probs = torch.from_numpy(matches.probs.copy()).to(device)
        num_values = matches.source.num_entities - num_source
        rows = ManyMatching.of_pairs(
            pairs, probs, num_values, self.num_all_target, len(pairs)
        )
        self.targets, self.probs = rows.targets, rows.probs

    def matching(self, matching: Matching | ManyMatching) -> Any:
        """Return the matching, of the same class, with the matches of values.

        In a one-to-one matching, each source value is matched to its most probable target value.
        """
        if isinstance(matching, ManyMatching):
            width = max(matching.targets.shape[1], self.targets.shape[1])
            return ManyMatching(
                _stacked(matching.targets, self.targets, width),
                _stacked(matching.probs, self.probs, width),
                self.num_all_target,
            )
        found = torch.where(self.probs[:, 0] > 0, self.targets[:, 0], NO_MATCH)
        return Matching(
            torch.cat([matching.targets, found]),
            torch.cat([matching.probs, self.probs[:, 0].to(matching.probs)]),
            self.num_all_target,
        )

    def without_values(self, matching: Matching | ManyMatching) -> Any:
        """Return the matching, of the same class, in which no value has a match."""
        num_values = len(self.targets)
        shape = (num_values, *matching.targets.shape[1:])
        missing = NO_MATCH if isinstance(matching, Matching) else 0
        targets = matching.targets.new_full(shape, missing)
        probs = matching.probs.new_zeros(shape)
        return type(matching)(
            torch.cat([matching.targets, targets]),
            torch.cat([matching.probs, probs]),
            self.num_all_target,
        )

    def wanted(self, wanted: Tensor) -> Tensor:
        """Return a mask of source entities, extended by False for each value."""
        return torch.cat([wanted, wanted.new_zeros(len(self.targets))])

    def table(self, table: PairTable, probs: Tensor) -> tuple[PairTable, Tensor]:
        """Return the table and its beliefs with the matches of values as additional rows."""
        width = max(table.targets.shape[1], self.targets.shape[1])
        beliefs = _stacked(probs, self.probs, width)
        extended = PairTable(
            targets=_stacked(table.targets, self.targets, width),
            scores=_stacked(table.scores, self.probs, width),
            filled=_stacked(table.filled, self.probs > 0, width),
            num_target=self.num_all_target,
        )
        return extended, beliefs


def _stacked(first: Tensor, second: Tensor, width: int) -> Tensor:
    """Return both tables concatenated by rows, padded with zeros to one width."""
    return torch.cat([widened(part.to(first.dtype), width) for part in (first, second)])


def named_pairs(pair: GraphPair, device: torch.device | str = "cpu") -> Tensor | None:
    """Return ``source * num_target + target`` of entities of two ontologies that share a value.

    The result is ``None`` if the graphs are not ontologies or have no literals.
    """
    found = pair.literals
    if found is None or pair.matched_kinds is None:
        return None
    sides = (pair.source, found.source), (pair.target, found.target)
    first, second = (_holders(*side) for side in sides)
    shape = first.shape[1], second.shape[1]
    ones = np.ones(len(found.pairs), dtype=np.int32)
    matched = sp.csr_matrix((ones, (found.pairs[:, 0], found.pairs[:, 1])), shape=shape)
    rows, columns = (first @ matched @ second.T).nonzero()
    keys = rows.astype(np.int64) * pair.target.num_entities + columns
    return torch.from_numpy(keys).to(device)


def _holders(graph: KnowledgeGraph, extended: KnowledgeGraph) -> sp.csr_matrix:
    """Return ``[num_entities, num_nodes]`` which values entities have."""
    held = extended.triples[extended.triples[:, 1] >= graph.num_relations]
    shape = graph.num_entities, extended.num_entities
    ones = np.ones(len(held), dtype=np.int32)
    return sp.csr_matrix((ones, (held[:, 0], held[:, 2])), shape=shape)


def literal_rows(
    pair: GraphPair, device: torch.device | str = "cpu"
) -> LiteralRows | None:
    """Return the rows of a pair's matched values; ``None`` if the pair has no literals."""
    if pair.literals is None:
        return None
    return LiteralRows(
        pair.literals, pair.source.num_entities, pair.target.num_entities, device
    )


def with_values(pair: GraphPair) -> GraphPair:
    """Return the pair of extended graphs; the same pair if it has no literals."""
    if pair.literals is None:
        return pair
    return replace(
        pair, source=pair.literals.source, target=pair.literals.target, literals=None
    )
