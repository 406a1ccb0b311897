"""Replaces the answer of PARIS by the one that decoys judge, if literals decide it."""

import numpy as np
import torch

from emea.baselines.paris_reasoner import ParisReasoner
from emea.baselines.prase import PRASE
from emea.baselines.reasoner import AnyMatching, Reasoner
from emea.data.split import Supervision
from emea.literals.decoy_answer import DecoyAnswer, RelatedPairs, answer_by_decoys
from emea.matching.beliefs import Beliefs, Matching
from emea.rules.implied_pairs import FIXED_POINT
from emea.run.method_choice import is_judged_by_decoys
from emea.run.outcome import Numbers, RunInputs


def judged_by_decoys(
    inputs: RunInputs, reasoner: Reasoner, matching: AnyMatching
) -> DecoyAnswer | None:
    """Return the answer that decoys judge; ``None`` if other evidence than literals decides."""
    train = inputs.visible.train
    rejected = inputs.visible.rejected
    if not is_judged_by_decoys(inputs.graphs, len(train)):
        return None
    paris = reasoner.paris if isinstance(reasoner, PRASE) else reasoner
    if not isinstance(paris, ParisReasoner):
        return None
    if rejected is None:
        rejected = train[:0]
    related = related_pairs(paris, matching)
    return answer_by_decoys(inputs.graphs, related, train, rejected)


def related_pairs(paris: ParisReasoner, matching: AnyMatching) -> RelatedPairs:
    """Return the pairs that the neighbours of a matching support."""
    nothing = torch.zeros(0, dtype=torch.int64, device=matching.targets.device)
    found = [(nothing, nothing, nothing), *paris.relational(matching)]
    sources, targets, log_doubt = (
        torch.cat(column).cpu().numpy() for column in zip(*found, strict=True)
    )
    return RelatedPairs(
        pairs=np.stack([sources, targets], axis=1),
        log_doubt=log_doubt / FIXED_POINT,
        matched=matching.pairs().cpu().numpy(),
    )


def decoy_matching(
    answer: DecoyAnswer, links: torch.Tensor, num_target: int
) -> Matching:
    """Return the likely answers as a matching, and the links with probability 1."""
    pairs = torch.from_numpy(answer.winners()).to(links.device)
    probs = torch.from_numpy(answer.probs).to(links.device)
    found = Matching.of_links(pairs, len(answer.targets), num_target)
    found.probs[pairs[:, 0]] = probs[pairs[:, 0]]
    return Matching.of_links(links, len(answer.targets), num_target).joined(found)


def decoy_beliefs(answer: DecoyAnswer, links: torch.Tensor) -> Beliefs:
    """Return the best candidate of each source entity with its probability."""
    targets = torch.from_numpy(answer.targets).clamp(min=0).unsqueeze(1)
    probs = torch.from_numpy(answer.probs).unsqueeze(1)
    return Beliefs(targets, probs).to(links.device).clamped(links)


def least_share(metrics: Numbers, known: Supervision, num_source: int) -> float | None:
    """Return the lower end of the share of source entities without a link with a counterpart.

    Args:
        metrics: The sections of ``metrics.json``; without an estimate, the result is ``None``.
        known: The links for training, and those for validation, which do not count either.
        num_source: The number of source entities.
    """
    if "decoys" in metrics:
        # decoys count the entities of validation links like others
        num_given = len(np.unique(known.train[:, 0]))
        num_known = len(np.union1d(known.train[:, 0], known.validation[:, 0]))
        num_right = metrics["decoys"]["share_low"] * (num_source - num_given)
        num_open = max(1, num_source - num_known)
        return float(max(0.0, (num_right - (num_known - num_given)) / num_open))
    if "counterparts" in metrics:
        return float(metrics["counterparts"]["source"]["low"])
    return None


def decoy_numbers(answer: DecoyAnswer) -> Numbers:
    """Return the section ``decoys`` of ``metrics.json``."""
    return {
        "share": answer.share.value,
        "share_low": answer.share.low,
        "share_high": answer.share.high,
        "lookalikes": answer.lookalikes,
        "expected_precision": answer.expected_precision,
        "num_decoys": answer.num_decoys,
        "weights": answer.weights,
    }
