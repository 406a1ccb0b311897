"""Blocks of optimisation steps, and the data module that deals them out."""

from typing import NamedTuple

import numpy as np
import pytorch_lightning as pl
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from emea.data.arrays import IntArray


class StepBlock(NamedTuple):
    """So many steps on these links (joint entity ids)."""

    links: Tensor
    num_steps: int


class _Blocks(Dataset[StepBlock]):
    def __init__(self, links: Tensor, num_steps: int, block_size: int) -> None:
        self.links = links
        self.sizes = [min(block_size, num_steps - done) for done in range(0, num_steps, block_size)]

    def __getitem__(self, index: int) -> StepBlock:
        return StepBlock(self.links, self.sizes[index])

    def __len__(self) -> int:
        return len(self.sizes)


class LabelDataModule(pl.LightningDataModule):
    """Holds the links to train on and the number of steps of the next fit.

    Args:
        links: ``[num_links, 2]`` (source id, target id).
        num_source: entities of the source graph, where target ids start in the joint space.
        block_size: optimisation steps per Lightning batch.
    """

    def __init__(self, links: IntArray, num_source: int, block_size: int = 50) -> None:
        super().__init__()
        self.num_source = num_source
        self.block_size = block_size
        self.num_steps = 0
        self.relabel(links)

    def relabel(self, links: IntArray) -> None:
        """Train on these links from the next fit on."""
        self.links = torch.from_numpy(links + np.array([0, self.num_source]))

    def train_dataloader(self) -> DataLoader[StepBlock]:
        """The blocks of the next fit."""
        blocks = _Blocks(self.links, self.num_steps, self.block_size)
        return DataLoader(blocks, batch_size=None)
