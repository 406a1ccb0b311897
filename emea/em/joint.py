"""The interface of a joint step, and wrappers that change a step in one respect."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.data.arrays import IntArray
from emea.data.protocol import Visible
from emea.em.local import LocalUpdate
from emea.em.normaliser import FittedSearch, Normaliser
from emea.em.reports import JointReport, NeuralBeliefs
from emea.fit.alignment_module import AlignmentModule
from emea.matching.beliefs import Beliefs, Matching
from emea.matching.pair_table import PairRanking, PairTable, widened
from emea.matching.rejected_pairs import RejectedPairs
from emea.matching.similarity import Similarity


class JointStep(ABC):
    """Interface of the M-step and the E-step: from the neural model's similarity to new labels.

    A step receives its rule in its constructor and raises a ``ConfigError`` if it cannot use it.
    """

    reasons: bool = True
    """Whether the step can be called. If not, the labels of the next fit do not change."""

    uses_search: bool = False
    """Whether the step uses the search behind q. If so, the search is kept."""

    searches_all: bool = True
    """Whether the candidates of all source entities are searched in each iteration."""

    @abstractmethod
    def __call__(
        self, similarity: Similarity, visible: Visible, neural: NeuralBeliefs
    ) -> JointReport:
        """Run the M- and the E-step.

        Args:
            similarity: The similarity of the neural model.
            visible: All links that may be used.
            neural: The beliefs of the neural model.
        """

    def embeddings(
        self, module: AlignmentModule, visible: Visible
    ) -> tuple[Tensor, Tensor]:
        """Return the embeddings of both graphs after a fit."""
        return module.embeddings()

    def search(
        self, similarity: Similarity, normaliser: Normaliser, num_candidates: int
    ) -> tuple[Beliefs, FittedSearch | None]:
        """Return q over the best candidates, and its search if the step uses it."""
        if self.uses_search:
            return normaliser.search(similarity, num_candidates)
        return normaliser.beliefs(similarity, num_candidates), None

    def certain_links(self, visible: Visible) -> IntArray:
        """Return ``[num_links, 2]`` links that have probability 1 in q."""
        return visible.train

    def start_from(self, known: Matching) -> bool:
        """Let the first call start from the matches of an earlier run.

        Returns:
            Whether the step supports it. Otherwise it starts from the neural model's beliefs.
        """
        return False

    def state_dict(self) -> dict[str, Any]:
        """Return everything the next iteration depends on, as plain values and tensors."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a saved state, which may also contain the state of other objects."""
        if self.state_dict():
            raise NotImplementedError(
                f"{type(self).__name__} has a state but cannot restore it"
            )


class NoStep(JointStep):
    """The joint step of a run without EM, which answers with the neural model."""

    reasons = False

    def __call__(
        self, similarity: Similarity, visible: Visible, neural: NeuralBeliefs
    ) -> JointReport:
        """Raise an error: there is no rule to reason with."""
        raise NotImplementedError("a run without EM has no joint step")


class StepWrapper(JointStep):
    """Leaves everything to another step; subclasses change one respect.

    Args:
        step: The wrapped step.
    """

    def __init__(self, step: JointStep) -> None:
        self.step = step
        self.reasons = step.reasons
        self.uses_search = step.uses_search
        self.searches_all = step.searches_all

    def __call__(
        self, similarity: Similarity, visible: Visible, neural: NeuralBeliefs
    ) -> JointReport:
        """Run the wrapped step."""
        return self.step(similarity, visible, neural)

    def embeddings(
        self, module: AlignmentModule, visible: Visible
    ) -> tuple[Tensor, Tensor]:
        """Return the embeddings that the wrapped step uses."""
        return self.step.embeddings(module, visible)

    def search(
        self, similarity: Similarity, normaliser: Normaliser, num_candidates: int
    ) -> tuple[Beliefs, FittedSearch | None]:
        """Search as the wrapped step does."""
        return self.step.search(similarity, normaliser, num_candidates)

    def certain_links(self, visible: Visible) -> IntArray:
        """Return the certain links of the wrapped step."""
        return self.step.certain_links(visible)

    def start_from(self, known: Matching) -> bool:
        """Let the wrapped step start from the matches of an earlier run."""
        return self.step.start_from(known)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the wrapped step."""
        return self.step.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of the wrapped step."""
        self.step.load_state_dict(state)


Excludes = Callable[[Tensor, Tensor], Tensor]
"""Takes sources and targets of pairs, and returns which of the pairs are excluded."""


def of_rejected(pairs: IntArray) -> Excludes:
    """Exclude the pairs that a person rejected, ``[num_pairs, 2]``."""
    return RejectedPairs(pairs)


def of_other_kinds(kinds: tuple[IntArray, IntArray]) -> Excludes:
    """Exclude pairs of different kinds, given the kind of each source and each target entity."""
    source, target = (torch.from_numpy(of_side.copy()) for of_side in kinds)
    return lambda sources, targets: (
        source.to(targets.device)[sources] != target.to(targets.device)[targets]
    )


class ExcludedPairs(StepWrapper):
    """Gives some pairs probability 0, and no labels.

    The other candidates do not gain that probability, because an entity may have no counterpart.

    Args:
        step: The wrapped step.
        excludes: Chooses the pairs.
    """

    def __init__(self, step: JointStep, excludes: Excludes) -> None:
        super().__init__(step)
        self.excludes = excludes

    def search(
        self, similarity: Similarity, normaliser: Normaliser, num_candidates: int
    ) -> tuple[Beliefs, FittedSearch | None]:
        """Return q, in which excluded pairs have probability 0, and its search."""
        offered, searched = self.step.search(similarity, normaliser, num_candidates)
        return self.possible(offered), searched

    def __call__(
        self, similarity: Similarity, visible: Visible, neural: NeuralBeliefs
    ) -> JointReport:
        """Remove the excluded pairs from the report of the wrapped step."""
        joint = self.step(similarity, visible, neural)
        kept = ~self.excludes(*torch.from_numpy(joint.labels).T)
        weights = joint.label_weights
        ranking = joint.ranking
        if ranking is not None:
            excluded = self._excluded(ranking.table.targets)
            ranking = replace(
                ranking, scores=ranking.scores.masked_fill(excluded, -torch.inf)
            )
        return replace(
            joint,
            beliefs=self.possible(joint.beliefs),
            ranking=ranking,
            labels=joint.labels[kept.numpy()],
            label_weights=None if weights is None else weights[kept],
        )

    def possible(self, beliefs: Beliefs) -> Beliefs:
        """Return the beliefs, with probability 0 for excluded pairs."""
        return replace(
            beliefs, probs=beliefs.probs.masked_fill(self._excluded(beliefs.targets), 0)
        )

    def _excluded(self, targets: Tensor) -> Tensor:
        """Return which candidates, ``[num_source, width]``, are excluded."""
        return self.excludes(
            torch.arange(len(targets), device=targets.device).unsqueeze(1), targets
        )


class LocalStep(StepWrapper):
    """Recomputes the entities that a change of the graphs affects; others keep their beliefs.

    Args:
        step: The wrapped step.
        local: The entities to recompute, and the former beliefs of the others.

    Attributes:
        local: The same with the entities that searches and steps have added so far.
    """

    def __init__(self, step: JointStep, local: LocalUpdate) -> None:
        super().__init__(step)
        self.local = local
        self.searches_all = False

    def search(
        self, similarity: Similarity, normaliser: Normaliser, num_candidates: int
    ) -> tuple[Beliefs, FittedSearch | None]:
        """Return q of the recomputed entities, and the former beliefs of the others."""
        self.local = self.local.to(similarity.source.device).with_nearest(similarity)
        beliefs_of = partial(normaliser.beliefs, num_candidates=num_candidates)
        return self.local.neural_beliefs(similarity, beliefs_of), None

    def __call__(
        self, similarity: Similarity, visible: Visible, neural: NeuralBeliefs
    ) -> JointReport:
        """Run the wrapped step, and put the former beliefs and labels into its report."""
        report = self.step(similarity, visible, replace(neural, local=self.local))
        if report.recomputed is not None:
            self.local = replace(self.local, source=report.recomputed)
        kept = self.local.joint
        source = self.local.source
        assert kept is not None, "only EM has joint beliefs"
        if bool(source.all()):
            return report
        labels = report.labels.copy()
        others = ~source.cpu().numpy()[labels[:, 0]]
        labels[others, 1] = kept.best_targets().cpu().numpy()[labels[others, 0]]
        rows = source.unsqueeze(1)
        ranking = report.ranking
        return replace(
            report,
            beliefs=merged_beliefs(rows, report.beliefs, kept),
            labels=labels,
            ranking=None if ranking is None else _merged_ranking(rows, ranking, kept),
        )


def merged_beliefs(rows: Tensor, new: Beliefs, kept: Beliefs) -> Beliefs:
    """Return the new beliefs of the marked rows, and the former ones of the others."""
    width = max(new.num_candidates, kept.num_candidates)
    former = widened(kept.targets, width), widened(kept.probs.to(new.probs), width)
    return Beliefs(
        torch.where(rows, widened(new.targets, width), former[0]),
        torch.where(rows, widened(new.probs, width), former[1]),
    )


def _merged_ranking(rows: Tensor, ranking: PairRanking, kept: Beliefs) -> PairRanking:
    """Rank the former candidates of entities that are not recomputed by their probabilities.

    The similarity of these pairs is not computed; it is 0 in the table.
    """
    table = ranking.table
    width = max(table.targets.shape[1], kept.num_candidates)
    former = widened(kept.probs, width).to(ranking.scores)
    merged = PairTable(
        torch.where(rows, widened(table.targets, width), widened(kept.targets, width)),
        torch.where(rows, widened(table.scores, width), 0.0),
        torch.where(rows, widened(table.filled, width), former > 0),
        table.num_target,
    )
    return PairRanking(
        merged,
        torch.where(rows, widened(ranking.scores, width, -torch.inf), former.log()),
    )


def links_on(links: IntArray, device: torch.device) -> Tensor:
    """Return a copy of the links as a tensor on the device."""
    return torch.from_numpy(np.array(links)).to(device)
