"""Triton kernels of the passes of belief propagation, with their launcher.

The module can only be imported if Triton is installed.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from emea.kernels.other_sums import Slots
from emea.kernels.passes import DAMPING, MAX_LOGIT, Messages, Passes

PAIRS_AT_A_TIME, CHANGES_AT_A_TIME = 32, 4096
"""Pairs of an entity, and changes of entities, that a program reads at a time."""


@triton.jit
def send_messages_kernel(
    logits,
    received,
    sent,
    changes,
    starts,
    places,
    has_settled,
    competition,
    damping,
    least,
    PAIRS: tl.constexpr,
):
    """Update the messages of one entity to all its pairs; one program per entity.

    The message to a pair is ``1 / (1 + sum of the other terms of the entity)``, in the log domain
    and mixed with the previous one. At most one term is more than half of the sum. Subtracting it
    would cancel, so the others are summed without it. Nothing happens once ``has_settled`` is 1.

    Args:
        logits: Log potential of each place.
        received: Messages of the other side's entities to each place.
        sent: Messages of this side's entities, which are updated.
        changes: Sum of the absolute changes of each entity's messages.
        starts: Start of each entity's pairs in ``places``.
        places: Places of the pairs in the flattened table, by entity.
        has_settled: 1 if an earlier pass has changed little.
        competition: Weight of the received messages.
        damping: Share of the previous message that is kept.
        least: Smallest logarithm of a term.
        PAIRS: Pairs that are read at a time.
    """
    if tl.load(has_settled) == 0:
        entity = tl.program_id(0)
        first = tl.load(starts + entity)
        last = tl.load(starts + entity + 1)
        # the sum of all terms, and then the sum without a term that is more than its half
        total = 1.0
        for start in range(first, last, PAIRS):
            pair = start + tl.arange(0, PAIRS)
            inside = pair < last
            place = tl.load(places + pair, mask=inside, other=0)
            message = tl.load(received + place, mask=inside, other=0.0)
            logit = tl.load(logits + place, mask=inside, other=0.0)
            term = tl.exp(tl.maximum(competition * message + logit, least))
            total += tl.sum(tl.where(inside, term, 0.0), axis=0)
        smaller = 1.0
        for start in range(first, last, PAIRS):
            pair = start + tl.arange(0, PAIRS)
            inside = pair < last
            place = tl.load(places + pair, mask=inside, other=0)
            message = tl.load(received + place, mask=inside, other=0.0)
            logit = tl.load(logits + place, mask=inside, other=0.0)
            term = tl.exp(tl.maximum(competition * message + logit, least))
            is_small = inside & (term <= total / 2)
            smaller += tl.sum(tl.where(is_small, term, 0.0), axis=0)
        changed = 0.0
        for start in range(first, last, PAIRS):
            pair = start + tl.arange(0, PAIRS)
            inside = pair < last
            place = tl.load(places + pair, mask=inside, other=0)
            message = tl.load(received + place, mask=inside, other=0.0)
            logit = tl.load(logits + place, mask=inside, other=0.0)
            before = tl.load(sent + place, mask=inside, other=0.0)
            term = tl.exp(tl.maximum(competition * message + logit, least))
            others = tl.where(term > total / 2, smaller, total - term)
            now = -tl.log(others)
            now += damping * (before - now)
            tl.store(sent + place, now, mask=inside)
            changed += tl.sum(tl.where(inside, tl.abs(now - before), 0.0), axis=0)
        tl.store(changes + entity, changed)


@triton.jit(do_not_specialize=["num_changes"])
def settle_kernel(changes, num_changes, most, has_settled, NUMBERS: tl.constexpr):
    """Set ``has_settled`` if the changes of a pass sum to at most ``most``; a single program."""
    total = tl.zeros((NUMBERS,), dtype=tl.float32)
    for start in range(0, num_changes, NUMBERS):
        number = start + tl.arange(0, NUMBERS)
        total += tl.load(changes + number, mask=number < num_changes, other=0.0)
    if tl.sum(total, axis=0) <= most:
        tl.store(has_settled, 1)


def message_passes(
    slots: Slots, logits: Tensor, start: Messages, passes: Passes
) -> Messages:
    """Return the same as ``message_passes.message_passes``, without waiting for the device.

    All passes are launched. A flag on the device turns those after the last one into nothing.
    """
    logits = logits.contiguous()
    # the kernels write into copies of the first messages
    from_source, from_target = (messages.clone() for messages in start)
    num_source = len(slots.targets)
    changes = logits.new_zeros(num_source + slots.num_target)
    has_settled = torch.zeros((), dtype=torch.int32, device=logits.device)
    settings = has_settled, passes.competition, DAMPING, -MAX_LOGIT
    options = {"PAIRS": PAIRS_AT_A_TIME, "num_warps": 1}
    of_source = from_target, from_source, changes[:num_source], *slots.by_source
    of_target = from_source, from_target, changes[num_source:], *slots.by_target
    for _ in range(passes.most):
        send_messages_kernel[(num_source,)](logits, *of_source, *settings, **options)
        send_messages_kernel[(slots.num_target,)](
            logits, *of_target, *settings, **options
        )
        settle_kernel[(1,)](
            changes,
            len(changes),
            passes.least_change,
            has_settled,
            NUMBERS=CHANGES_AT_A_TIME,
        )
    return from_source, from_target
