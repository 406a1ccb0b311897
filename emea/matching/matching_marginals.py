"""Marginals of a distribution over one-to-one matchings, by belief propagation."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from emea.matching.compiled import arrays, loops
from emea.matching.pair_table import PairTable, group_starts
from emea.runtime import kernels
from emea.runtime.threads import in_ranges

MAX_PASSES = 6
"""Most passes over the messages of both sides; later calls for the same table continue them."""

DAMPING = 0.3
"""Share of the previous message that a pass keeps, in the log domain."""

TOLERANCE = 1e-2
"""Mean change of the messages of a pair, in the log domain, at which the passes end."""

OPERATIONS_PER_PAIR = 64
"""Approximate operations per pair of all passes."""

MAX_LOGIT = 80.0
"""Bound of the potentials, so that their exponentials neither overflow nor become denormal."""


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
        tolerance: Mean change of the messages of a pair at which the passes end.
        start: Messages for the same table to start from; with ``None`` all entities start as free.
    """
    num_pairs, empty = int(table.filled.sum()), ~table.filled
    bounded = log_potentials.clamp(-MAX_LOGIT, MAX_LOGIT)
    logits = torch.where(table.filled, bounded, -MAX_LOGIT)
    if start is None:
        from_source = from_target = torch.zeros_like(logits)
    else:
        from_source, from_target = start.from_source, start.from_target
    of_source, of_target = _other_sums(table)
    for _ in range(max_passes):
        before = from_source, from_target
        sums = of_source(_terms(logits, competition, from_target))
        from_source = sums.log_().neg_().lerp_(from_source, DAMPING)
        sums = of_target(_terms(logits, competition, from_source))
        from_target = sums.log_().neg_().lerp_(from_target, DAMPING)
        change = (from_source - before[0]).abs_()
        change += (from_target - before[1]).abs_()
        if float(change.masked_fill_(empty, 0).sum()) <= tolerance * max(1, num_pairs):
            break
    return MatchingMessages(from_source.masked_fill(empty, 0), from_target.masked_fill(empty, 0))


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


def _terms(logits: Tensor, competition: float, messages: Tensor) -> Tensor:
    """Return ``potential * message ** competition`` of each pair, at least ``exp(-MAX_LOGIT)``.

    The bound changes no result, because terms are added to 1. Exponentials of minus infinity and
    denormal ones take ten times as long.
    """
    return (competition * messages).add_(logits).clamp_(min=-MAX_LOGIT).exp_()


OtherSums = Callable[[Tensor], Tensor]
"""Takes the terms of the pairs, and returns 1 + the sum of the other terms of a pair's entity."""


def _other_sums(table: PairTable) -> tuple[OtherSums, OtherSums]:
    """Return the sums over the pairs of each source entity, and of each target entity."""
    if not kernels.uses_numba(table.targets, OPERATIONS_PER_PAIR * table.targets.numel()):
        return partial(_torch_sums, None), partial(_torch_sums, table)
    places = table.filled.flatten().nonzero().squeeze(1)
    targets = table.targets.flatten()[places]
    by_target = places[torch.argsort(targets, stable=True)]
    of_source = group_starts(places // table.targets.shape[1], table.num_source), places
    of_target = group_starts(targets, table.num_target), by_target
    return partial(_compiled_sums, of_source), partial(_compiled_sums, of_target)


def _compiled_sums(groups: tuple[Tensor, Tensor], terms: Tensor) -> Tensor:
    """Return the sums of the pairs, and 1 in other places.

    Args:
        groups: Start of each entity's pairs in the list of pairs, and the places of the pairs in
            the flattened terms.
        terms: ``[num_source, width]``, not negative.
    """
    sums = torch.ones_like(terms)
    given = arrays(*groups), *(values.reshape(-1) for values in arrays(terms, sums))
    in_ranges(loops().other_sums, len(groups[0]) - 1, *given)
    return sums


def _torch_sums(table: PairTable | None, terms: Tensor) -> Tensor:
    """Return 1 + the sum of the other terms of each pair's entity, ``[num_source, width]``.

    Subtracting a term from its sum would cancel if the term is most of the sum. At most one term
    of an entity is more than half of it; the others of such a term are summed without it.

    Args:
        table: The pairs, to sum those of each target entity; ``None`` for the source entities.
        terms: ``[num_source, width]``, not negative, about 0 in empty slots.
    """

    def sums(values: Tensor) -> Tensor:
        if table is None:
            return values.sum(1, keepdim=True)
        by_target = table.sum_by_target(values)
        return by_target.index_select(0, table.targets.flatten()).view_as(values)

    total = 1 + sums(terms)
    is_most = terms > total / 2
    return torch.where(is_most, 1 + sums(terms.masked_fill(is_most, 0)), total - terms)
