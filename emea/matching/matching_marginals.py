"""Marginals of a distribution over one-to-one matchings, by belief propagation."""

from dataclasses import dataclass

import torch
from torch import Tensor

from emea.matching.pair_table import PairTable

MAX_PASSES = 20
"""Passes over the messages of both sides; strong potentials with many rivals may reach it."""

DAMPING = 0.3
"""Share of the previous message that a pass keeps, in the log domain."""

TOLERANCE = 1e-2
"""Largest change of a message, in the log domain, at which the passes end."""


@dataclass(frozen=True, eq=False)
class MatchingMessages:
    """Holds the log probability that an entity is free for a pair, given all its other pairs.

    Args:
        from_source: ``[num_source, width]`` message of the source entity of each pair.
        from_target: ``[num_source, width]`` message of the target entity of each pair.
    """

    from_source: Tensor
    from_target: Tensor


def matching_messages(
    table: PairTable,
    log_potentials: Tensor,
    competition: float = 1.0,
    max_passes: int = MAX_PASSES,
    tolerance: float = TOLERANCE,
    start: MatchingMessages | None = None,
) -> MatchingMessages:
    """Run belief propagation for a distribution over partial one-to-one matchings.

    A matching M is a set of pairs in which each entity occurs at most once, and has the
    probability ``p(M) ~ prod exp(log_potential(e, e'))`` over its pairs. The source entity of a
    pair sends to the pair::

        x(e -> e') = 1 / (1 + sum over c != e' of potential(e, c) x(c -> e) ** competition)

    and the target entity sends the same with the sides exchanged. With ``competition=1`` these are
    the messages of the sum-product algorithm. They are exact if the pairs form a forest, and they
    converge for every table, because the Bethe free energy of matchings is convex.

    Args:
        table: The pairs.
        log_potentials: ``[num_source, width]``, relative to both entities being unmatched. The
            values of empty slots are ignored.
        competition: Weight of the other side's messages, between 0 and 1. With 0, an entity
            compares its own pairs only.
        max_passes: Bound on the number of passes.
        tolerance: Largest change of a message at which the passes end.
        start: Messages for the same table to start from; with ``None`` all entities start as free.
    """
    sources, slots = table.filled.nonzero(as_tuple=True)
    targets, logits = table.targets[sources, slots], log_potentials[sources, slots]
    from_source, from_target = torch.zeros_like(logits), torch.zeros_like(logits)
    if start is not None:
        from_source, from_target = (
            side[sources, slots] for side in (start.from_source, start.from_target)
        )
    for _ in range(max_passes):
        before = from_source, from_target
        new = -_log_one_and_others(logits + competition * from_target, sources, table.num_source)
        from_source = torch.lerp(new, from_source, DAMPING)
        new = -_log_one_and_others(logits + competition * from_source, targets, table.num_target)
        from_target = torch.lerp(new, from_target, DAMPING)
        changes = torch.cat([from_source - before[0], from_target - before[1]]).abs()
        if not len(changes) or float(changes.max()) <= tolerance:
            break
    sides = [log_potentials.new_zeros(table.targets.shape) for _ in range(2)]
    for side, messages in zip(sides, (from_source, from_target), strict=True):
        side[sources, slots] = messages
    return MatchingMessages(sides[0], sides[1])


def log_marginals(
    table: PairTable,
    log_potentials: Tensor,
    messages: MatchingMessages,
    competition: float = 1.0,
) -> Tensor:
    """Return the log probability that a pair is in the matching, ``[num_source, width]``.

    From the source side the log odds of a pair are ``log_potential + from_source + competition *
    from_target``, and from the target side the same with the messages exchanged. Both are equal if
    ``competition`` is 1. Otherwise their mean is used. Empty slots have minus infinity.
    """
    both = messages.from_source + messages.from_target
    odds = log_potentials + (1 + competition) / 2 * both
    return torch.where(table.filled, torch.nn.functional.logsigmoid(odds), -torch.inf)


def _log_one_and_others(logits: Tensor, groups: Tensor, num_groups: int) -> Tensor:
    """Return ``log(1 + sum of exp(logits))`` over all other entries of each entry's group.

    Subtracting an entry from its group's sum would lose precision if the entry is the largest one.
    The other entries of a group with a single largest entry are therefore summed separately.
    """
    largest = _largest(logits, groups, num_groups)
    is_largest = logits == largest[groups]
    num_largest = torch.zeros_like(largest).index_add_(0, groups, is_largest.to(logits))
    is_top = is_largest & (num_largest[groups] == 1)
    shift = largest.clamp(min=0)
    terms = (logits - shift[groups]).exp()
    total = torch.zeros_like(shift).index_add_(0, groups, terms) + (-shift).exp()
    with_top = (total[groups] - terms).log() + shift[groups]
    others = torch.where(is_top, -torch.inf, logits)
    shift = _largest(others, groups, num_groups).clamp(min=0)
    rest = (others - shift[groups]).exp()
    total = torch.zeros_like(shift).index_add_(0, groups, rest) + (-shift).exp()
    return torch.where(is_top, total.log()[groups] + shift[groups], with_top)


def _largest(values: Tensor, groups: Tensor, num_groups: int) -> Tensor:
    lowest = values.new_full((num_groups,), -torch.inf)
    return lowest.scatter_reduce_(0, groups, values, "amax")
