"""Probabilities of the answer: calibration, and beliefs that did not follow from shared labels."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from emea.data.protocol import Visible
from emea.em.counterparts import LEAST_SHARE, Share
from emea.em.joint import JointStep, StepWrapper, links_on, merged_beliefs
from emea.em.m_step import fit_weights
from emea.em.reports import JointReport, NeuralBeliefs
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairRanking
from emea.matching.similarity import Similarity

LEAST_BELIEF = 1e-3
"""Smaller beliefs of a witness are not kept; they count as 0."""

MARGIN = 1e-6
"""Smallest distance of a probability from 0 and 1, so that its logit is finite."""

STATE = "witnesses."
"""Prefix of the names of the state in a checkpoint."""


class PairBeliefs(NamedTuple):
    """Beliefs in pairs after a fit by ascending ``source * num_target + target``; others have 0."""

    keys: Tensor
    probs: Tensor

    @classmethod
    def of(cls, ranking: PairRanking) -> "PairBeliefs":
        """Return the beliefs of a ranking whose scores are log beliefs."""
        probs = ranking.scores.exp()
        kept = ranking.table.filled & (probs >= LEAST_BELIEF)
        keys, order = ranking.table.keys()[kept].sort()
        return cls(keys, probs[kept][order].float())

    def to(self, device: torch.device) -> "PairBeliefs":
        """Return the same on a device."""
        return PairBeliefs(self.keys.to(device), self.probs.to(device))

    def on(self, keys: Tensor) -> Tensor:
        """Return the beliefs in some pairs."""
        if not len(self.keys):
            return torch.zeros_like(keys, dtype=torch.float32)
        place = torch.searchsorted(self.keys, keys).clamp_(max=len(self.keys) - 1)
        return torch.where(self.keys[place] == keys, self.probs[place], 0.0)


class EarlierFits(StepWrapper):
    """Takes the probabilities of the answer from fits before the labels were shared.

    The beliefs of later fits confirm the pseudo-labels on which all encoders were trained. The
    probability of an entity's best pair is therefore the mean belief in it after the first training
    and after the last fit on each encoder's own labels, weighted by the mean belief in the
    validation links and calibrated on them. The share of entities with a counterpart is that of the
    first training, because entities without one confirm their pseudo-labels later.

    Args:
        step: The step, which ranks pairs.
        last_own: The last iteration before the labels are shared; ``None`` means that they never
            are.
    """

    def __init__(self, step: JointStep, last_own: int | None) -> None:
        super().__init__(step)
        self.last_own = last_own
        self.heard: dict[str, PairBeliefs] = {}
        self.votes: Tensor | None = None
        self.own: Beliefs | None = None
        self.shares: tuple[Share, ...] | None = None

    def __call__(
        self, similarity: Similarity, visible: Visible, neural: NeuralBeliefs
    ) -> JointReport:
        """Run the wrapped step and replace the probabilities of its answer."""
        report = self.step(similarity, visible, neural)
        if report.ranking is None or not report.is_answer:
            return report
        is_heard = self._hear(report, report.ranking, neural.iteration)
        device = similarity.source.device
        beliefs = report.beliefs
        if visible.is_crossed:
            self.own = beliefs if is_heard else self.own
            beliefs = self._out_of_fold(beliefs, visible)
        rows = torch.arange(beliefs.num_source, device=device).unsqueeze(1)
        keys = rows * similarity.num_target + beliefs.targets
        heard = [one.to(device) for one in self.heard.values()]
        validation = links_on(visible.validation, device)
        scores = _mean_scores([one.on(keys) for one in heard], beliefs, validation)
        share = 1.0 if self.shares is None else self.shares[0].value
        found = calibrated(beliefs, validation, share=share, scores=scores)
        found = found.clamped(links_on(visible.certain, device))
        return replace(report, beliefs=found, votes=self.votes, shares=self.shares)

    def _hear(self, report: JointReport, ranking: PairRanking, iteration: int) -> bool:
        """Keep the beliefs of the first and of the last fit on own labels; return if it is one."""
        if self.last_own is not None and iteration > max(self.last_own, 0):
            return False
        self.heard["last" if iteration else "first"] = PairBeliefs.of(ranking)
        self.votes = report.votes
        if not iteration:
            self.shares = report.shares
        return True

    def _out_of_fold(self, beliefs: Beliefs, visible: Visible) -> Beliefs:
        """Return the beliefs, with those of the crossed links before the labels were shared.

        Shared labels also follow from encoders that were trained on a link.
        """
        assert self.own is not None, "the first fit is always heard"
        device = beliefs.probs.device
        others = torch.ones(beliefs.num_source, 1, dtype=torch.bool, device=device)
        others[links_on(visible.train[:, 0], device)] = False
        own = Beliefs(self.own.targets.to(device), self.own.probs.to(device))
        return merged_beliefs(others, beliefs, own)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the wrapped step, and the beliefs that were kept."""
        state = self.step.state_dict()
        for name, one in self.heard.items():
            state |= {
                f"{STATE}{name}.{key}": part.cpu()
                for key, part in one._asdict().items()
            }
        if self.shares is not None:
            state[f"{STATE}shares"] = torch.tensor(self.shares, dtype=torch.float64)
        if self.own is not None:
            own = {"targets": self.own.targets.cpu(), "probs": self.own.probs.cpu()}
            state |= {f"{STATE}own.{key}": part for key, part in own.items()}
        return (
            state
            if self.votes is None
            else {**state, f"{STATE}votes": self.votes.cpu()}
        )

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state."""
        self.step.load_state_dict(state)
        self.heard = {
            name: PairBeliefs(
                state[f"{STATE}{name}.keys"], state[f"{STATE}{name}.probs"]
            )
            for name in ("first", "last")
            if f"{STATE}{name}.keys" in state
        }
        self.votes, targets = (
            state.get(f"{STATE}votes"),
            state.get(f"{STATE}own.targets"),
        )
        self.own = (
            None if targets is None else Beliefs(targets, state[f"{STATE}own.probs"])
        )
        shares = state.get(f"{STATE}shares")
        self.shares = (
            None if shares is None else tuple(Share(*row) for row in shares.tolist())
        )


def _mean_scores(heard: Sequence[Tensor], beliefs: Beliefs, links: Tensor) -> Tensor:
    """Return the mean of several beliefs, each weighted by its mean belief in the links."""
    is_link = beliefs.targets[links[:, 0]] == links[:, 1:]
    known = [
        torch.where(is_link, one[links[:, 0]], 0.0).sum() + MARGIN for one in heard
    ]
    weights = torch.stack(known) / torch.stack(known).sum()
    return (torch.stack(list(heard)) * weights.view(-1, 1, 1)).sum(0)


def calibrated(
    beliefs: Beliefs,
    links: Tensor,
    ridge: float = 0.1,
    share: float = 1.0,
    scores: Tensor | None = None,
) -> Beliefs:
    """Return the same candidates in the same order, with the best one's probability calibrated.

    This is Platt scaling: the probability that an entity's best candidate is correct is
    ``sigmoid(a logit(p) + c)``, with a >= 0 and c fitted by maximum likelihood and a prior around
    the identity. The examples are links, and the same links without their pair, for which the best
    candidate is always wrong. The latter count ``(1 - share) / share`` times.

    Args:
        beliefs: Rows that sum to at most 1.
        links: ``[num_links, 2]`` held-out links. Without links, nothing is calibrated.
        ridge: Strength of the prior.
        share: Share of the source entities that have a counterpart, at least ``LEAST_SHARE``.
        scores: ``[num_source, k]`` probabilities p that replace those of the beliefs; the order of
            the candidates does not change.
    """
    if not len(links) and scores is None:
        return beliefs
    scores = beliefs.probs if scores is None else scores.to(beliefs.probs)
    best = scores.gather(1, beliefs.best_slots().unsqueeze(1)).squeeze(1)
    slope = 1.0
    shift = 0.0
    if len(links):
        logits, right, counts = _examples(
            beliefs, scores, links, max(share, LEAST_SHARE)
        )
        slope, shift = _fitted(logits, right, counts, ridge)
    scaled = torch.sigmoid(slope * _logit(best) + shift)
    return with_best(beliefs, torch.where(beliefs.probs.max(1).values > 0, scaled, 0.0))


def with_best(beliefs: Beliefs, scaled: Tensor) -> Beliefs:
    """Return the beliefs with other probabilities of the best candidates, which stay the best.

    If the best candidate gains probability, "no match" loses it first, and then the other
    candidates in proportion. If it loses probability, "no match" gains it.
    """
    is_best = torch.zeros_like(beliefs.probs, dtype=torch.bool)
    is_best.scatter_(1, beliefs.best_slots().unsqueeze(1), True)
    # scale instead of subtracting: if the best is nearly 1, rounding would set the others to 0
    others = beliefs.probs.masked_fill(is_best, 0).sum(1)
    room = torch.where(
        others > 0, ((1 - scaled) / others.clamp(min=MARGIN)).clamp(max=1), 0.0
    )
    # the other candidates must stay below the best one
    second = beliefs.probs.topk(min(2, beliefs.num_candidates), dim=1).values[:, -1]
    room = torch.minimum(room, (1 - MARGIN) * scaled / second.clamp(min=MARGIN))
    probs = torch.where(is_best, scaled.unsqueeze(1), beliefs.probs * room.unsqueeze(1))
    return Beliefs(beliefs.targets, probs)


class JudgedPairs(NamedTuple):
    """The logits of some pairs, whether each is right, and how much it counts in a fit."""

    logits: Tensor
    right: Tensor
    counts: Tensor


def _examples(
    beliefs: Beliefs, scores: Tensor, links: Tensor, share: float
) -> JudgedPairs:
    """Return the best candidates of links and of masked links.

    Without the pair of a link, the next candidate is the best, and its score grows in proportion to
    what the pair leaves over.
    """
    rows, targets = links.T
    slots = beliefs.best_slots()[rows].unsqueeze(1)
    is_link = beliefs.targets[rows] == targets.unsqueeze(1)
    right = is_link.gather(1, slots).squeeze(1)
    best = scores[rows].gather(1, slots).squeeze(1)
    if share >= 1:
        return JudgedPairs(_logit(best), right, torch.ones_like(best))
    others = beliefs.probs[rows].masked_fill(is_link, 0)
    next_best = scores[rows].gather(1, others.argmax(1, keepdim=True)).squeeze(1)
    left = 1 - torch.where(is_link, scores[rows], 0.0).sum(1)
    masked = torch.where(
        others.max(1).values > 0, next_best / left.clamp(min=MARGIN), 0.0
    )
    counts = torch.ones_like(best), torch.full_like(best, (1 - share) / share)
    wrong = torch.zeros_like(right)
    return JudgedPairs(
        logits=_logit(torch.cat([best, masked])),
        right=torch.cat([right, wrong]),
        counts=torch.cat(counts),
    )


def _fitted(
    logits: Tensor, right: Tensor, counts: Tensor, ridge: float
) -> tuple[float, float]:
    """Fit slope and shift of the calibration: slot 1 means correct, slot 0 means wrong."""
    values = torch.zeros(len(logits), 2, 2, dtype=torch.float64)
    values[:, 1, 0] = logits.cpu()
    values[:, 1, 1] = 1
    prior = torch.tensor([1.0, 0.0]).double()
    least = torch.tensor([0.0, -torch.inf]).double()
    slots = right.long().cpu()
    fitted = fit_weights(
        values, slots, ridge, prior=prior, least=least, counts=counts.double().cpu()
    )
    slope, shift = fitted.tolist()
    return slope, shift


def _logit(probs: Tensor) -> Tensor:
    return torch.logit(probs.clamp(MARGIN, 1 - MARGIN))
