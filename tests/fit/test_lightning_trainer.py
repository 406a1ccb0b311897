"""The strategy that keeps the module on its device, against Lightning's own one."""

from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import pytest
import pytorch_lightning as pl
import torch

from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.encoders.joint_graph import join_graphs
from emea.encoders.rmsprop import RMSprop
from emea.encoders.rrea import RREA, MarginObjective
from emea.fit.alignment_module import AlignmentModule
from emea.fit.fitting import fit
from emea.fit.lightning_trainer import ResidentAccelerator, ResidentStrategy, placement
from emea.fit.step_block import LabelDataModule

from ..usual import usual

LINKS = np.array([[0, 0], [1, 1], [2, 2]])


def random_graph(num_entities: int) -> KnowledgeGraph:
    sizes = (num_entities, 3, num_entities)
    return KnowledgeGraph(np.random.default_rng(0).integers(0, sizes, (30, 3)), num_entities, 3)


@pytest.fixture
def make_module() -> Callable[[], AlignmentModule]:
    """Makes a module around a small RREA with the same weights each time."""
    pair = GraphPair("random", random_graph(9), random_graph(10), LINKS)

    def make() -> AlignmentModule:
        torch.manual_seed(0)
        encoder = usual(RREA, join_graphs(pair), dim=4, dropout=0.0)
        optimizer = partial(RMSprop, lr=0.005, alpha=0.9, eps=1e-7)
        return AlignmentModule(
            encoder, usual(MarginObjective), optimizer, num_source=9, num_target=10
        )

    return make


class Watched(pl.Callback):
    """Keeps the optimiser of the last fit."""

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self.optimizer = trainer.optimizers[0]
        assert self.optimizer.state


def fit_on(module: AlignmentModule, watched: Watched, **chosen: Any) -> None:
    data = LabelDataModule(LINKS, num_source=9, block_size=3)
    data.num_steps = 7
    trainer = pl.Trainer(
        max_epochs=1,
        devices=1,
        callbacks=[watched],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **chosen,
    )
    trainer.fit(module, datamodule=data)


def test_fits_are_those_of_lightnings_strategy(
    make_module: Callable[[], AlignmentModule],
) -> None:
    results, watched = [], Watched()
    for resident in (False, True):
        module = make_module()
        for _ in range(2):
            strategy = ResidentStrategy(torch.device("cpu")) if resident else "auto"
            fit_on(module, watched, accelerator="cpu", strategy=strategy)
        results.append(module.encoder.state_dict())
    assert not watched.optimizer.state
    for name, weights in results[0].items():
        assert torch.equal(weights, results[1][name]), name


def test_module_and_cached_memory_stay_on_the_device() -> None:
    strategy, module = ResidentStrategy(torch.device("cpu")), mock.Mock()
    strategy.accelerator, strategy._lightning_module = ResidentAccelerator(), module
    with mock.patch.object(torch.cuda, "empty_cache") as emptied:
        strategy.teardown()
        strategy.accelerator.setup(mock.Mock(local_rank=0))
    assert not module.cpu.called
    assert not emptied.called


def test_only_a_gpu_needs_the_strategy() -> None:
    assert placement(torch.device("cpu")) == {"accelerator": "cpu"}
    chosen: dict[str, Any] = placement(torch.device("cuda"))
    assert isinstance(chosen["strategy"], ResidentStrategy)
    assert chosen["strategy"].root_device == torch.device("cuda", 0)
    assert isinstance(chosen["accelerator"], ResidentAccelerator)


@pytest.mark.gpu
def test_fits_on_a_gpu_leave_the_module_there(
    make_module: Callable[[], AlignmentModule], cuda: torch.device
) -> None:
    module = make_module()
    data = LabelDataModule(LINKS, num_source=9, block_size=3)
    devices = []
    for links in (LINKS, LINKS[:2], LINKS):
        data.relabel(links)
        fit(module, data, 7, "gpu", [pl.Callback()])
        devices.append(module.device.type)
    assert devices == [cuda.type] * 3
    assert module.num_steps_done == 21
    assert all(rows.isfinite().all() and rows.is_cuda for rows in module.embeddings())
