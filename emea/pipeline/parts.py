"""Everything one run is made of, built from its config."""

from dataclasses import dataclass
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf

from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.em.em_callback import EMCallback, Observer
from emea.em.protocol import Visible
from emea.encoders.alignment_module import AlignmentModule
from emea.encoders.joint_graph import join_graphs
from emea.encoders.step_block import LabelDataModule
from emea.pipeline.building import make, maker
from emea.rules.rule import Rule


@dataclass(frozen=True, eq=False)
class Parts:
    """The objects of a run."""

    module: AlignmentModule
    data: LabelDataModule
    em: EMCallback


def load_pair(config: DictConfig) -> GraphPair:
    """The pair of graphs the config names."""
    pair: GraphPair = maker(config.data, keep_name=True)()
    return pair


def draw_split(config: DictConfig, pair: GraphPair) -> Split:
    """The split of its links."""
    split: Split = maker(config.split)(pair)
    return split


def build_parts(
    config: DictConfig, pair: GraphPair, visible: Visible, observer: Observer, device: torch.device
) -> Parts:
    """Encoder, labels and EM callback; they get the visible links and no others."""
    torch.manual_seed(config.seed)
    num_source = pair.source.num_entities
    optimizer = config.model.optimizer
    encoder = maker(config.model.encoder)(graph=join_graphs(pair))
    module = AlignmentModule(
        encoder=encoder,
        objective=maker(config.model.objective)(),
        optimizer=None if optimizer is None else maker(optimizer),
        num_source=num_source,
        cuda_graph=config.trainer.cuda_graph,
    )
    data = LabelDataModule(visible.train, num_source, config.trainer.block_size)
    rule = maker(config.rule)(pair=pair, device=device) if config.em.iterations else None
    return Parts(module, data, _build_em(config, visible, observer, rule))


def _build_em(
    config: DictConfig, visible: Visible, observer: Observer, rule: Rule | None
) -> EMCallback:
    settings: Any = OmegaConf.to_container(config.em, resolve=True)
    for handled_elsewhere in ("name", "iterations", "normaliser"):
        settings.pop(handled_elsewhere)
    em: EMCallback = make(
        EMCallback,
        visible=visible,
        decoder=maker(config.decoding)(),
        normaliser=maker(config.em.normaliser)(),
        rule=rule,
        observer=observer,
        seed=config.seed,
        **settings,
    )
    return em
