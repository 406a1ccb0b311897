"""Marginals of a distribution over one-to-one matchings, by belief propagation."""

from dataclasses import dataclass

import torch
from torch import Tensor

from emea.kernels.message_passes import message_passes
from emea.kernels.passes import MAX_LOGIT, Passes
from emea.matching.pair_table import PairTable

MAX_PASSES = 6
"""Most passes over the messages of both sides; later calls for the same table continue them."""

TOLERANCE = 1e-2
"""Mean change of the messages of a pair, in the log domain, at which the passes end."""


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
    *,
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
        tolerance: Mean change of the messages of a pair at which the passes end.
        start: Messages for the same table to start from; with ``None`` all entities start as free.
    """
    slots = table.slots
    # empty slots have the smallest potential, so that they add next to nothing to a sum
    bounded = log_potentials.clamp(-MAX_LOGIT, MAX_LOGIT)
    logits = torch.where(table.filled, bounded, -MAX_LOGIT)
    if start is None:
        first = torch.zeros_like(logits), torch.zeros_like(logits)
    else:
        first = start.from_source, start.from_target
    least_change = tolerance * max(1, len(slots.by_source.places))
    passes = Passes(competition, max_passes, least_change)
    from_source, from_target = message_passes(slots, logits, first, passes)
    empty = ~table.filled
    return MatchingMessages(
        from_source.masked_fill(empty, 0), from_target.masked_fill(empty, 0)
    )


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
