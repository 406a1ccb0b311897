"""What the joint module makes of an iteration."""

from dataclasses import dataclass, field

from torch import Tensor

from emea.data.arrays import IntArray
from emea.matching.beliefs import Beliefs
from emea.matching.pair_table import PairRanking


@dataclass(frozen=True, eq=False)
class JointReport:
    """What the joint module made of one iteration.

    Args:
        beliefs: q*; where pairs are ranked, best by the ranking first.
        labels: ``[num_labels, 2]`` pseudo-labels handed to the next fit, training links apart.
        weights: rule weights by name.
        compatibility: ``[num_source]`` rule value of the neural model's best candidate.
        label_weights: ``[num_labels]`` how much each label counts in training; ``None``: as much
            as a training link.
        ranking: ranks pairs of a table before all others; ``None``: q* reorders the neural
            model's candidates.
        is_answer: whether the run stands for this ranking, and not for the neural model's.
        details: further numbers by name.
    """

    beliefs: Beliefs
    labels: IntArray
    weights: dict[str, float]
    compatibility: Tensor
    label_weights: Tensor | None = None
    ranking: PairRanking | None = None
    is_answer: bool = False
    details: dict[str, float] = field(default_factory=dict)
