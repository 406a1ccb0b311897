"""Encoders that return a parameter, and Lightning Trainers that only train."""

from functools import partial
from types import SimpleNamespace
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn

from emea.data.graph_pair import GraphPair
from emea.encoders.joint_graph import join_graphs
from emea.encoders.rmsprop import RMSprop
from emea.encoders.rrea import RREA, MarginObjective
from emea.fit.alignment_module import AlignmentModule
from emea.fit.lightning_settings import LightningSettings
from emea.fit.lightning_trainer import LightningAlignment
from emea.fit.step_block import LabelDataModule
from emea.fit.training_parts import TrainingParts


class Rows(nn.Module):
    """An encoder that returns a parameter, or a constant tensor."""

    def __init__(self, num_entities: int, width: int, is_trained: bool = True) -> None:
        super().__init__()
        rows = torch.randn(num_entities, width)
        self.rows = nn.Parameter(rows) if is_trained else rows

    def forward(self) -> Tensor:
        return self.rows


def table_of_rows(num_entities: int, width: int) -> Rows:
    """The same random rows each time, in double precision."""
    torch.manual_seed(0)
    return Rows(num_entities, width).double()


def small_rrea(pair: GraphPair) -> AlignmentModule:
    """A module around a small RREA with the same weights each time."""
    torch.manual_seed(0)
    encoder = RREA(join_graphs(pair), dim=4, dropout=0.0)
    optimizer = partial(RMSprop, lr=0.005, alpha=0.9, eps=1e-7)
    return AlignmentModule(
        encoder,
        MarginObjective(),
        optimizer,
        num_source=pair.source.num_entities,
        num_target=pair.target.num_entities,
    )


def plain_trainer(**given: Any) -> pl.Trainer:
    """A Trainer on a CPU that writes nothing, with other arguments."""
    quiet = (
        "enable_checkpointing",
        "enable_progress_bar",
        "enable_model_summary",
        "logger",
    )
    usual = {"max_epochs": 1, "accelerator": "cpu", **dict.fromkeys(quiet, False)}
    return pl.Trainer(**usual | given)


def fit_by(trainer: pl.Trainer, module: AlignmentModule, data: LabelDataModule) -> None:
    """Let a Trainer of Lightning fit a module."""
    trainer.fit(LightningAlignment(module, data))


def fit_members(
    module: AlignmentModule,
    data: LabelDataModule,
    members: tuple[int, ...],
    num_epochs: int,
    device: torch.device | str = "cpu",
    hooks: Any = (),
    callbacks: Any = (),
) -> None:
    """Fit some members of an ensemble as a run does."""
    module.active_members = data.active_members = tuple(members)
    parts: Any = SimpleNamespace(
        module=module, data=data, stopping=None, lightning=LightningSettings(callbacks)
    )
    TrainingParts.fit(parts, num_epochs, torch.device(device), hooks)
