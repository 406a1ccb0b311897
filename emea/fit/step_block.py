"""Blocks of optimisation steps, and the labels from which they are made."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from emea.data.arrays import IntArray


class Labels(NamedTuple):
    """Holds links in joint entity ids and their weights; ``None`` means equal weights."""

    links: Tensor
    weights: Tensor | None = None


class StepBlock(NamedTuple):
    """Holds the labels of each encoder in training, and the number of steps to run on them."""

    labels: tuple[Labels, ...]
    num_steps: int
    steps_per_epoch: int = 1

    @property
    def total_steps(self) -> int:
        """Number of steps of all encoders together."""
        return self.num_steps * len(self.labels)

    def to(self, device: torch.device) -> "StepBlock":
        """Return the block with its labels on a device."""
        labels = [
            Labels(links.to(device), None if weights is None else weights.to(device))
            for links, weights in self.labels
        ]
        return self._replace(labels=tuple(labels))


def block_sizes(
    num_steps: int, block_size: int, stop_every: int | None = None
) -> list[int]:
    """Return block sizes that sum to ``num_steps``; blocks end after each ``stop_every`` steps."""
    span = stop_every or max(num_steps, 1)
    sizes = []
    for start in range(0, num_steps, span):
        length = min(span, num_steps - start)
        sizes += [
            min(block_size, length - done) for done in range(0, length, block_size)
        ]
    return sizes


class LabelDataModule:
    """Holds the links to train on and the number of steps of the next turn.

    A fit has one or more turns. Each turn has its own labels.

    Args:
        links: ``[num_links, 2]`` (source id, target id).
        num_source: Number of entities of the source graph, which is the first target id in the
            joint id space.
        block_size: Number of optimisation steps per block.
        check_every: Number of epochs after which a block ends, so that callbacks can evaluate the
            model.
        num_target: Number of entities of the target graph, used to check links from a file.

    Attributes:
        active_members: The members of an ensemble whose links the next turn uses.
    """

    def __init__(
        self,
        links: IntArray,
        num_source: int,
        block_size: int = 50,
        check_every: int | None = None,
        num_target: int | None = None,
    ) -> None:
        self.num_source = num_source
        self.num_target = num_target
        self.block_size = block_size
        self.check_every = check_every
        self.num_steps = 0
        self.steps_per_epoch = 1
        self.active_members: tuple[int, ...] = (0,)
        self.relabel([(links, None)])

    @property
    def links(self) -> Tensor:
        """``[num_links, 2]`` links of the first active member, in joint entity ids."""
        return self.labels_of(self.active_members[0]).links

    @property
    def weights(self) -> Tensor | None:
        """``[num_links]`` weight of each of these links; ``None`` means equal weights."""
        return self.labels_of(self.active_members[0]).weights

    @property
    def labels(self) -> IntArray:
        """Return the current links (source id, target id), ``[num_links, 2]``."""
        links: IntArray = self.links.numpy() - np.array([0, self.num_source])
        return links

    def relabel(self, labels: Sequence[tuple[IntArray, Tensor | None]]) -> None:
        """Train on these links from the next turn on.

        Args:
            labels: ``[num_links, 2]`` links (source id, target id) of each member of an ensemble,
                and their weights (``None`` means equal weights); all members share one entry.
        """
        offset = np.array([0, self.num_source])
        self.member_labels = [
            Labels(torch.from_numpy(links + offset), weights)
            for links, weights in labels
        ]

    def labels_of(self, member: int) -> Labels:
        """Return the links and weights of a member of an ensemble, which may be shared."""
        return self.member_labels[member if len(self.member_labels) > 1 else 0]

    def restore(self, labels: Sequence[Labels]) -> None:
        """Restore the labels of each member, or those of all members, that were read from a file.

        Raises:
            ValueError: If the links are not between these graphs.
        """
        for links, weights in labels:
            if links.dtype != torch.int64 or links.shape != (len(links), 2):
                raise ValueError("its links are not pairs of entities")
            sources, targets = links.T
            is_known = (
                (sources >= 0)
                & (sources < self.num_source)
                & (targets >= self.num_source)
            )
            if self.num_target is not None:
                is_known &= targets < self.num_source + self.num_target
            if not is_known.all():
                raise ValueError("its links are not between these graphs")
            if weights is not None and weights.shape != links.shape[:1]:
                raise ValueError("not every link has a weight")
        self.member_labels = list(labels)

    def add(self, links: IntArray) -> None:
        """Add links from the next turn on; they have weight 1 if the others have weights."""
        weights = self.weights
        if weights is not None:
            weights = torch.cat([weights, weights.new_ones(len(links))])
        self.relabel([(np.concatenate([self.labels, links]), weights)])

    def plan(self, num_epochs: int, steps_per_epoch: int) -> None:
        """Set the number of epochs of the next turn."""
        self.num_steps = num_epochs * steps_per_epoch
        self.steps_per_epoch = steps_per_epoch

    def blocks(self) -> DataLoader[StepBlock]:
        """Return the blocks of the next turn. Each iteration over them draws a random number."""
        stop_every = (
            self.check_every * self.steps_per_epoch if self.check_every else None
        )
        sizes = block_sizes(self.num_steps, self.block_size, stop_every)
        labels = tuple(map(self.labels_of, self.active_members))
        blocks: Any = [StepBlock(labels, size, self.steps_per_epoch) for size in sizes]
        return DataLoader(blocks, batch_size=None)
