"""Pairs of entities that matched neighbours imply, with the evidence for each.

If n is matched to n', every r(x, n) and r'(x', n') is evidence that x is x'. A matched pair of
hubs implies as many pairs as the product of their degrees. Three bounds keep the work linear in
the number of triples:

- Pairs of relations whose evidence is below ``least_evidence`` are dropped before their pairs of
  entities are enumerated.
- Groups of more than ``MAX_MEMBERS`` entities with the same relation to the same neighbour are
  dropped. Their local inverse functionality is below ``1 / MAX_MEMBERS``, so they hardly
  distinguish their members.
- The remaining pairs are enumerated in blocks of source entities. A block contains all pairs of
  its source entities.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from emea.kernels.flat_groups import chunks, expand_ranges, group_sizes, run_ends
from emea.matching.beliefs import Matching
from emea.matching.many_matching import ManyMatching
from emea.rules.directed_triples import TailGroups
from emea.rules.pair_evidence import log_doubt
from emea.runtime.block_memory import block_budget

EVIDENCE_PER_BLOCK = {"cpu": 2**20, "cuda": 2**25}
"""Pieces of evidence held at a time, per kind of device; a single entity may have more."""

MAX_MEMBERS = 1000
"""Members of the largest group whose pairs are made; no group of DBP15K or OpenEA 15K is larger."""

FIXED_POINT = 2.0**32
"""Logarithms are added as integers in units of ``1 / FIXED_POINT``. The sum does not depend on the
order, so that equal evidence is exactly equal on any device."""

ALMOST_SURE = 1 - 1e-12
"""Maximum probability of an inferred pair; only known pairs have probability 1."""

Inclusions = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Returns Pr(r in r') and Pr(r' in r), given r and r'."""


class ImpliedPairs(NamedTuple):
    """Holds distinct implied pairs; all pairs of a source entity are contiguous.

    Args:
        sources: ``[num_pairs]`` source entities x.
        targets: ``[num_pairs]`` target entities x'.
        log_doubt: Sum of the log doubts that the pieces of evidence leave, in units of
            ``1 / FIXED_POINT``.
    """

    sources: Tensor
    targets: Tensor
    log_doubt: Tensor

    def kept(self, kept: Tensor) -> "ImpliedPairs":
        """Return the pairs for which ``kept``, ``[num_pairs]`` bool, is true."""
        places = kept.nonzero().squeeze(1)
        return ImpliedPairs(
            self.sources[places], self.targets[places], self.log_doubt[places]
        )


def implied_pairs(
    source: TailGroups,
    target: TailGroups,
    matching: Matching | ManyMatching,
    *,
    wanted: Tensor,
    included: Inclusions,
    least_evidence: float,
) -> Iterator[ImpliedPairs]:
    """Yield all implied pairs in blocks of source entities.

    Args:
        source: The source graph.
        target: The target graph.
        matching: Matched neighbours with their probabilities.
        wanted: ``[num_source]`` bool: source entities whose pairs are wanted.
        included: Returns the inclusions of relations.
        least_evidence: Evidence of this probability or less is dropped.
    """
    starts, groups, doubts = _group_evidence(
        source, target, matching, included, least_evidence
    )
    num_rows = torch.diff(starts)[source.group_of_head]
    triples = ((num_rows > 0) & wanted[source.heads]).nonzero().squeeze(1)
    heads = source.heads[triples]
    first = starts[source.group_of_head[triples]]
    num_rows = num_rows[triples]
    num_members = target.num_members[groups]
    member_starts = target.member_starts[groups]
    made = run_ends(num_members)
    # slices of the triples with about equal evidence that do not split a head
    ends = run_ends(torch.unique_consecutive(heads, return_counts=True)[1])
    of_head = torch.diff(run_ends(made[first + num_rows] - made[first])[ends])
    ends = ends.cpu()
    for part in chunks(of_head, block_budget(EVIDENCE_PER_BLOCK, heads.device)):
        block = slice(int(ends[part.start]), int(ends[part.stop]))
        triple, row = expand_ranges(first[block], num_rows[block])
        members = member_starts.index_select(0, row), num_members.index_select(0, row)
        index, member = expand_ranges(*members)
        keys = (
            (heads[block] * matching.num_target)
            .index_select(0, triple)
            .index_select(0, index)
        )
        keys += target.members.index_select(0, member)
        log_doubt = doubts.index_select(0, row).index_select(0, index)
        yield _summed(keys, log_doubt, matching.num_target)


def _group_evidence(
    source: TailGroups,
    target: TailGroups,
    matching: Matching | ManyMatching,
    included: Inclusions,
    least_evidence: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the evidence for whole groups: one row per pair of a source and a target group.

    Returns:
        Start of the rows of each source group, target group of each row, and its log doubt in units
        of ``1 / FIXED_POINT``.
    """
    small = (source.num_members <= MAX_MEMBERS).nonzero().squeeze(1)
    found = matching.matched(source.owners[small])
    first = target.starts[found.targets]
    index, target_groups = expand_ranges(
        first, target.starts[found.targets + 1] - first
    )
    groups = small[found.places[index]]
    probs = found.probs[index]
    relations = source.relations[groups]
    others = target.relations[target_groups]
    forth, back = (share.double() for share in included(relations, others))
    of_source = source.inverse_functionality[relations]
    of_target = target.inverse_functionality[others]
    log = log_doubt(forth, back, of_source, of_target, probs)
    is_heard = -torch.expm1(log) > least_evidence
    is_heard &= target.num_members[target_groups] <= MAX_MEMBERS
    starts = run_ends(group_sizes(groups, len(source.owners), is_heard))
    heard = is_heard.nonzero().squeeze(1)
    fixed = (log[heard] * FIXED_POINT).round().long()
    return starts, target_groups[heard], fixed


def _summed(keys: Tensor, log_doubt: Tensor, num_target: int) -> ImpliedPairs:
    keys, order = torch.sort(keys)
    pairs, sizes = torch.unique_consecutive(keys, return_counts=True)
    total = log_doubt.index_select(0, order).cumsum(0)[sizes.cumsum(0) - 1]
    total[1:] -= total[:-1].clone()
    return ImpliedPairs(pairs // num_target, pairs % num_target, total)
