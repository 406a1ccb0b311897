"""The AvoidConf rules: keep the neural prediction, avoid targets that similar entities claim."""

import torch
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Beliefs
from emea.matching.candidates import top_candidates
from emea.matching.similarity import Cosine
from emea.rules.rule import Rule, RuleView
from emea.rules.settings import AvoidConflictSettings
from emea.runtime.block_memory import block_budget, in_smaller_blocks

COMPARISONS_PER_BLOCK = {"cpu": 2**22}
"""Pairs of candidates that are compared at a time; this bounds the memory."""


class AvoidConflict(Rule):
    """Implements the paper's rules for avoiding conflicts (section 4.2).

    The factor subset ``F_e`` contains e and N(e), its nearest neighbours in embedding space::

        g1(y_F_e) = 1[y_e = the neural model's best target of e]
        g2(y_F_e) = 1[y_e != y_n for all n in N(e)]

    The score of ``y_e = e'`` sums each g over all subsets that contain e (Eq. 7), in expectation
    under q for the other entities (Eq. 12). q is a product over entities. With q_n(t) for
    q(y_n = t), the parts of these sums that depend on e' are::

        g1:  1[e' is the best target of e]
        g2:  prod_{n in N(e)} (1 - q_n(e'))                                      in F_e
             - sum_{n: e in N(n)} q_n(e') prod_{m in N(n), m != e} (1 - q_m(e'))  in each F_n

    The last line is the probability that y_e = e' causes the first conflict in F_n. Terms that do
    not depend on e' are the same for all candidates, cancel in Eq. 7 and are omitted: g1 of the
    other subsets, and the value of g2 without e. As a result, g2 is 1 if e' causes no conflict.

    Args:
        pair: The two graphs.
        num_neighbours: Number of neighbours in a subset (N in the paper); all other entities if
            there are fewer.
        mappings: ``best`` maps each other entity to its best candidate, which is the single sample
            of the paper (section 4.5). ``expected`` uses the probabilities of q. The probability of
            targets that are not candidates causes no conflict.
        device: Not used; the values are computed on the device of the beliefs.

    Example:
        Two entities, which are neighbours, believe in target 0.

        >>> from emea import Beliefs, RuleView
        >>> from emea.data.sources.synthetic import synthetic_pair
        >>> rule = AvoidConflict(synthetic_pair(num_entities=20), num_neighbours=1)
        >>> targets = torch.tensor([[0, 1], [0, 1]])
        >>> beliefs = Beliefs(targets, torch.tensor([[0.9, 0.1], [0.6, 0.4]]))
        >>> rule.prepare(RuleView(beliefs, torch.eye(2)))
        >>> follow_neural, unique = rule(beliefs).unbind(2)
        >>> follow_neural.tolist(), (unique[:, 1] > unique[:, 0]).tolist()
        ([[1.0, 0.0], [1.0, 0.0]], [True, True])
    """

    names = ("follow_neural", "unique")
    fits_on_unseen_links = True

    def __init__(
        self,
        pair: GraphPair,
        num_neighbours: int = AvoidConflictSettings.num_neighbours,
        mappings: str = AvoidConflictSettings.mappings,
        device: torch.device | str = "cpu",
    ) -> None:
        self.num_neighbours = min(num_neighbours, pair.source.num_entities - 1)
        self.mappings = mappings
        self._neighbours: Tensor | None = None

    def prepare(self, view: RuleView) -> None:
        """Find each entity's neighbours."""
        self._neighbours = nearest_neighbours(
            view.source_embeddings, self.num_neighbours
        )

    @in_smaller_blocks
    def __call__(self, beliefs: Beliefs) -> Tensor:
        """Return g1 and g2 for each candidate, ``[num_source, k, 2]``."""
        assert self._neighbours is not None, "call prepare first"
        claims = _best_alone(beliefs) if self.mappings == "best" else beliefs
        # g1: the candidate is the one that the neural model prefers
        follow = torch.zeros_like(beliefs.probs)
        follow[:, 0] = (
            1  # slot 0 is the neural model's best candidate, also for labelled entities
        )
        # g2: the probability that no neighbour claims the candidate, minus, for each entity that
        # has this one as a neighbour, the probability that the candidate is its first conflict
        unique = torch.zeros_like(beliefs.probs)
        per_entity = (
            self.num_neighbours * beliefs.num_candidates * claims.num_candidates
        )
        rows = torch.arange(beliefs.num_source, device=beliefs.targets.device)
        limit = block_budget(COMPARISONS_PER_BLOCK, rows.device)
        for block in torch.split(rows, max(1, limit // max(1, per_entity))):
            near = self._neighbours[block]
            unique[block] += _unclaimed_by_neighbours(
                claims, near, beliefs.targets[block]
            )
            lost = _first_conflicts(beliefs, claims, block, near)
            unique.index_add_(0, near.flatten(), lost.flatten(0, 1), alpha=-1)
        return torch.stack([follow, unique], dim=2)


def nearest_neighbours(embeddings: Tensor, num_neighbours: int) -> Tensor:
    """Return the nearest other entities by cosine, ``[num_entities, num_neighbours]``."""
    nearest = top_candidates(
        Cosine()(embeddings, embeddings), num_neighbours + 1
    ).targets
    entity = torch.arange(len(nearest), device=nearest.device).unsqueeze(1)
    itself = nearest == entity
    # an entity is not among its nearest if enough others have the same embedding
    itself[:, -1] |= ~itself.any(1)
    return nearest[~itself].view(len(nearest), num_neighbours)


def _best_alone(beliefs: Beliefs) -> Beliefs:
    """Return each entity's best candidate as its only one, the single sample of section 4.5."""
    slots = beliefs.best_slots().unsqueeze(1)
    targets = beliefs.targets.gather(1, slots)
    probs = beliefs.hardened().probs.gather(1, slots)
    return Beliefs(targets, probs)


def _unclaimed_by_neighbours(
    claims: Beliefs, neighbours: Tensor, targets: Tensor
) -> Tensor:
    """Return g2 in an entity's own subset: the probability that no neighbour claims a target."""
    return (1 - _claimed(claims, neighbours, targets)).prod(1)


def _first_conflicts(
    beliefs: Beliefs, claims: Beliefs, rows: Tensor, neighbours: Tensor
) -> Tensor:
    """Return the probability of a first conflict, ``[rows, neighbours, k]``.

    That is the probability that the row's entity claims a neighbour's candidate and no other
    neighbour does.
    """
    targets = claims.targets[rows]
    unclaimed = _product_of_others(1 - _claimed(claims, neighbours, targets))
    first = claims.probs[rows].unsqueeze(1) * unclaimed
    same = beliefs.targets[neighbours].unsqueeze(3) == targets[:, None, None]
    return (same * first.unsqueeze(2)).sum(3)


def _claimed(claims: Beliefs, entities: Tensor, targets: Tensor) -> Tensor:
    """Return the probability that an entity claims a target, ``[rows, entities, targets]``."""
    same = claims.targets[entities].unsqueeze(2) == targets[:, None, :, None]
    # rounding can raise a sum of probabilities above 1
    return (same * claims.probs[entities].unsqueeze(2)).sum(3).clamp_(max=1)


def _product_of_others(factors: Tensor) -> Tensor:
    """Return the product of all other factors along dimension 1."""
    one = torch.ones_like(factors[:, :1])
    before = torch.cat([one, factors[:, :-1]], dim=1).cumprod(1)
    after = torch.cat([factors[:, 1:], one], dim=1).flip(1).cumprod(1).flip(1)
    return before * after
