"""Beliefs with everything beliefs may have: empty slots and rows, ties, labels others claim."""

import numpy as np
import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs

TIED = (0.0, 0.1, 0.3, 0.5, 1.0)


def random_beliefs(seed: int, tied: bool = False) -> tuple[Beliefs, Tensor]:
    """Beliefs, and labels of some entities of which they are certain.

    Args:
        seed: of sizes and values.
        tied: few different probabilities, 0 and 1 among them.
    """
    rng = np.random.default_rng(seed)
    num_source, num_target = rng.integers(1, 12, 2).tolist()
    k = int(rng.integers(1, num_target + 1))
    targets = np.stack([rng.permutation(num_target)[:k] for _ in range(num_source)])
    if tied:
        probs = rng.choice(TIED, (num_source, k))
        probs /= np.maximum(probs.sum(1, keepdims=True), 1)
    else:
        probs = rng.dirichlet(np.ones(k + 1), num_source)[:, :k]
        probs[rng.random((num_source, k)) < 0.2] = 0
    num_labels = int(rng.integers(0, min(num_source, num_target) + 1)) // 2
    sources = rng.permutation(num_source)[:num_labels]
    links = np.stack([sources, rng.permutation(num_target)[:num_labels]], axis=1)
    labels = torch.from_numpy(links.astype(np.int64))
    # a label that is no candidate takes the last slot, so a target may be left that stands twice
    return Beliefs(torch.from_numpy(targets), torch.from_numpy(probs)).clamped(
        labels
    ), labels


def free_table(beliefs: Beliefs, labels: Tensor) -> np.ndarray:
    """``[num_source, num_target]`` probabilities of the pairs that the labels leave open."""
    num_target = 1 + max([int(beliefs.targets.max()), *labels[:, 1].tolist()])
    table = np.zeros((beliefs.num_source, num_target))
    for source in range(beliefs.num_source):
        for target, prob in zip(
            beliefs.targets[source], beliefs.probs[source], strict=True
        ):
            open_ = (
                source not in labels[:, 0].tolist()
                and int(target) not in labels[:, 1].tolist()
            )
            table[source, target] += float(prob) * open_
    return table


def answered(answer: Beliefs) -> dict[int, tuple[int, float]]:
    """What an answer says of the source entities that it matches."""
    assert answer.num_candidates == 1
    rows = zip(answer.targets[:, 0].tolist(), answer.probs[:, 0].tolist(), strict=True)
    return {
        source: (target, prob) for source, (target, prob) in enumerate(rows) if prob
    }


def certain(labels: Tensor) -> dict[int, tuple[int, float]]:
    """What every answer must say of the labelled source entities."""
    return {source: (target, 1.0) for source, target in labels.tolist()}
