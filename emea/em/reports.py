"""The reports of a joint step and of an iteration."""

from dataclasses import dataclass, field

from torch import Tensor

from emea.data.arrays import IntArray
from emea.em.counterparts import Share
from emea.em.local import LocalUpdate
from emea.em.normaliser import FittedSearch
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairRanking
from emea.matching.similarity import Similarity


@dataclass(frozen=True, eq=False)
class NeuralBeliefs:
    """The beliefs of the neural model after a fit.

    Args:
        embeddings: ``[num_source, dim]`` embeddings of the source entities.
        offered: q over the neural model's own candidates.
        beliefs: q in which the step's certain links have probability 1.
        searched: The search that q is based on; ``None`` if the step does not use it.
        iteration: Number of the iteration; 0 is the first fit.
        local: Entities whose beliefs are recomputed; ``None`` means all.
    """

    embeddings: Tensor
    offered: Beliefs
    beliefs: Beliefs
    searched: FittedSearch | None = None
    iteration: int = 0
    local: LocalUpdate | None = None


@dataclass(frozen=True, eq=False)
class JointReport:
    """The result of the joint step in one iteration.

    Args:
        beliefs: q*. If ``ranking`` is set, the best candidates by the ranking come first.
        labels: ``[num_labels, 2]`` pseudo-labels for the next fit, without the training links.
        weights: Rule weights by name.
        compatibility: ``[num_source]`` rule value of the neural model's best candidate.
        label_weights: ``[num_labels]`` weight of each pseudo-label in training. With ``None`` a
            pseudo-label has the weight of a training link.
        ranking: Ranks the pairs of a table before all others. With ``None``, q* reorders the
            neural model's candidates.
        is_answer: Whether the run answers with this ranking instead of the neural model's.
        details: Further numbers by name.
        recomputed: ``[num_source]`` bool: entities that a local update recomputed, if the step
            added some to the given ones.
        members: Reports whose labels the members of an ensemble train on; all are equal in shared
            fits. Empty if the members are not independent.
        shares: Estimated share of the unlabelled entities of each side that have a counterpart;
            ``None`` if it was not estimated.
        votes: ``[num_members, num_source]`` best target of each encoder of an ensemble.
    """

    beliefs: Beliefs
    labels: IntArray
    weights: dict[str, float]
    compatibility: Tensor
    label_weights: Tensor | None = None
    ranking: PairRanking | None = None
    is_answer: bool = False
    details: dict[str, float] = field(default_factory=dict)
    recomputed: Tensor | None = None
    members: tuple["JointReport", ...] = ()
    shares: tuple[Share, ...] | None = None
    votes: Tensor | None = None


@dataclass(frozen=True, eq=False)
class IterationReport:
    """The state after one fit and its EM steps, for the observer of a run.

    Args:
        iteration: Number of the iteration; 0 is the model before any EM step.
        similarity: Similarity of the neural model.
        beliefs: q(y_e) of the neural model; labelled entities are certain.
        normaliser: Fitted parameters of the normaliser.
        joint: Report of the joint step; ``None`` without one.
        validation: Metrics of the neural model on the validation links, among all targets.
        answer_validation: The same metrics for the joint ranking; ``None`` if the run does not
            answer with a joint ranking, or if there are no validation links.
        search_recall: Share of the true best candidates that an approximate search found;
            ``None`` if the search was exact.
        seconds: Duration of the candidate search and of the M- and E-step, in seconds.
    """

    iteration: int
    similarity: Similarity
    beliefs: Beliefs
    normaliser: dict[str, float]
    joint: JointReport | None
    validation: dict[str, float]
    answer_validation: dict[str, float] | None
    search_recall: float | None
    seconds: dict[str, float]

    @property
    def answer(self) -> Beliefs:
        """The answer of the run at this point: each entity's candidates with probabilities."""
        if self.joint is None or not self.joint.is_answer:
            return self.beliefs
        return self.joint.beliefs

    @property
    def answer_ranking(self) -> PairRanking | None:
        """The joint ranking, which precedes the neural ranking; ``None`` if there is none."""
        return (
            self.joint.ranking
            if self.joint is not None and self.joint.is_answer
            else None
        )
