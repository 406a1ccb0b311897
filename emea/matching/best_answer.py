"""The answer that asks nobody else: the best candidate of each source entity."""

from dataclasses import dataclass

from torch import Tensor

from emea.matching.beliefs import Beliefs


@dataclass(frozen=True)
class BestAnswer:
    """Each source entity takes its most probable candidate, whoever else takes it."""

    def __call__(self, beliefs: Beliefs, labels: Tensor) -> Beliefs:
        """At most one target for each source entity.

        Args:
            beliefs: what to choose from.
            labels: ``[num_labels, 2]`` links that are certain.

        Returns:
            Beliefs over one slot; an entity without a match has probability 0 there.
        """
        slots = beliefs.best_slots().unsqueeze(1)
        best = Beliefs(beliefs.targets.gather(1, slots), beliefs.probs.gather(1, slots))
        return best.clamped(labels)
