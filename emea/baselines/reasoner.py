"""What every baseline is: seeds in, a matching out."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from emea.matching.matching import Matching
from emea.matching.similarity import Similarity


@dataclass(frozen=True, eq=False)
class ReasoningReport:
    """The state after one iteration, for whoever observes the run.

    Args:
        iteration: counts from 0 over the whole run.
        matching: what is matched now.
        num_changes: source entities that are matched otherwise than before.
        similarity: of the embedding that the reasoning uses; ``None`` where it uses none.
    """

    iteration: int
    matching: Matching
    num_changes: int
    similarity: Similarity | None = None


Observer = Callable[[ReasoningReport], None]

Embed = Callable[[Tensor], Similarity]
"""Trains an encoder on ``[num_links, 2]`` links and says how similar its entities are."""


class Reasoner(ABC):
    """Aligns two graphs from seeds."""

    @abstractmethod
    def align(self, seeds: Tensor, embed: Embed, observer: Observer) -> Matching:
        """The matching that the seeds lead to.

        Args:
            seeds: ``[num_seeds, 2]`` links that are certain.
            embed: trains an encoder, for those that use one.
            observer: told the state after each iteration; its answer is not used.
        """
