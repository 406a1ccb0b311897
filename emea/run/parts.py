"""Builds the objects of one run from its config."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pytorch_lightning.loggers import Logger
from torch import Tensor, nn

from emea.answer.decision import Answering, with_given
from emea.answer.decoding import BestAnswer
from emea.config.checks import check_config
from emea.config.composition import error_text
from emea.config.instantiate import factory, make
from emea.config.settings.conditions import two_way_is_off
from emea.config.settings.em import PaperEMSettings
from emea.config.settings.execution import ExportSettings, lightning_options
from emea.data.arrays import IntArray
from emea.data.graph_pair import GraphPair, LiteralMatches
from emea.data.protocol import Visible
from emea.data.split import Split
from emea.em.em_callback import EMCallback, Observer
from emea.em.joint import JointStep, LocalStep, NoStep, RejectedPairs
from emea.em.local import LocalUpdate
from emea.em.members import IndependentMembers, WeightedMembers
from emea.em.normaliser import SoftmaxNormaliser
from emea.em.paper_step import PaperStep
from emea.encoders.joint_graph import JointGraph, join_graphs
from emea.encoders.objective import Ensemble, EnsembleObjective, Objective
from emea.errors import ConfigError, DataError
from emea.fit.alignment_module import AlignmentModule
from emea.fit.early_stopping import EarlyStopping
from emea.fit.lightning_trainer import LightningSettings
from emea.fit.step_block import LabelDataModule
from emea.fit.training_parts import TrainingParts
from emea.matching.similarity import Decoder
from emea.rules.literals import Literals
from emea.rules.rule import Composed, Rule


@dataclass(frozen=True, eq=False)
class Parts(TrainingParts):
    """The objects of a run, of which the EM callback is the one between the fits.

    Args:
        local: The part of the joint step that restricts it to some entities; ``None`` if it
            computes all of them.
    """

    em: EMCallback
    local: LocalStep | None = None


def member_models(config: DictConfig) -> list[DictConfig]:
    """Return the settings of the encoders of a run: one, or one for each member of an ensemble."""
    num_seeds = OmegaConf.select(config, "ensemble.num_members", default=1)
    others = OmegaConf.select(config, "ensemble.models") or {}
    return [config.model] * num_seeds + [model for model in others.values() if model is not None]


def draw_split(config: DictConfig, pair: GraphPair) -> Split:
    """Return the split of a pair's links, as configured."""
    split = factory(config.split)(pair)
    if not isinstance(split, Split):
        raise ConfigError(f"{config.split._target_} returns no split. Choose another split.")
    return split


def with_literals(config: DictConfig, pair: GraphPair) -> GraphPair:
    """Return the pair with its matched literals if the config uses them; links are not used."""
    settings = OmegaConf.select(config, "literals")
    if settings is None or "_target_" not in settings:
        return pair
    literals = factory(settings)()(pair)
    if not isinstance(literals, LiteralMatches):
        raise ConfigError(f"{settings._target_} does not match literals. Choose another option.")
    return replace(pair, literals=literals)


def export_settings(config: DictConfig) -> ExportSettings:
    """Return the settings of the answer; older configs without them get the defaults."""
    node = OmegaConf.select(config, "export") or {}
    given = {key: node[key] for key in vars(ExportSettings()) if key in node}
    return with_given(ExportSettings(), **given)


def check_export(config: DictConfig, settings: ExportSettings) -> None:
    """Check settings against the ranges of the config.

    Raises:
        ConfigError: If a value is not allowed. The message names the key, the value and the range.
    """
    asked = config.copy()
    try:
        for name, value in vars(settings).items():
            asked.export[name] = value
    except OmegaConfBaseException as error:  # a config cannot contain this value
        raise ConfigError(error_text(error)) from error
    check_config(asked)


def build_answering(config: DictConfig) -> Answering:
    """Return the decoder of a config; baselines without decoding keep their best candidates."""
    if "decoding" not in config.method.uses:
        return BestAnswer()
    answering: Answering = factory(config.decoding)()
    return answering


def decoder_name(config: DictConfig) -> str:
    """Return the name of the decoder, or ``none`` if the method does not use decoding."""
    return str(config.decoding.name) if "decoding" in config.method.uses else "none"


def initial_labels(visible: Visible, pair: GraphPair) -> tuple[IntArray, Tensor | None]:
    """Return the links of the first fit and their weights: training links, then anchors."""
    if pair.literals is None:
        return visible.encoder_links, None
    anchors, train = pair.literals.anchors, visible.encoder_links
    known = visible.train
    free = ~np.isin(anchors[:, 0], known[:, 0]) & ~np.isin(anchors[:, 1], known[:, 1])
    if not len(train) and not free.any():
        raise DataError(
            f"{pair.name} has no links to learn from, and no literal value that exactly one entity "
            "of each graph has. Add known links."
        )
    weights = np.concatenate([np.ones(len(train)), pair.literals.anchor_probs[free]])
    return np.concatenate([train, anchors[free]]), torch.from_numpy(weights).float()


def build_parts(
    config: DictConfig,
    pair: GraphPair,
    visible: Visible,
    observer: Observer,
    device: torch.device,
    local: LocalUpdate | None = None,
) -> Parts:
    """Return encoder, labels and callbacks; they get only the visible links.

    Args:
        config: The configuration of the run.
        pair: The graphs.
        visible: The links that training and EM may use.
        observer: Called after each fit.
        device: The device of the rule.
        local: Entities to which EM is restricted; ``None`` means all.
    """
    torch.manual_seed(config.seed)
    held_out = OmegaConf.select(config, "model.early_stopping.held_out")
    if held_out:
        visible = visible.holding_out(held_out, config.seed)
    num_source = pair.source.num_entities
    graph, models = join_graphs(pair), member_models(config)
    make_models = [partial(_build_model, model, graph) for model in models]
    encoder, objective = _build_models(make_models)
    makers = [factory(model.optimizer) if model.optimizer else None for model in models]
    module = AlignmentModule(
        encoder=encoder,
        objective=objective,
        optimizer=makers,
        num_source=num_source,
        num_target=pair.target.num_entities,
        # sums in a fixed order wait for the device, which a CUDA graph cannot do
        cuda_graph=config.trainer.cuda_graph and not torch.are_deterministic_algorithms_enabled(),
    )
    decoder = factory(config.similarity)(search=factory(config.search)())
    stopping = _build_stopping(config, visible, decoder)
    check_every = stopping.every if stopping else None
    uses_rule = config.em.iterations and "rule" in config.method.uses
    rule = _build_rule(config, visible, pair, device) if uses_rule else None
    step: JointStep = NoStep() if rule is None else _build_step(config, rule)
    local_step = None if local is None else LocalStep(step, local)
    step = _wrapped(config, local_step or step, visible, decoder)
    labels, label_weights = initial_labels(visible, pair)
    data = LabelDataModule(
        labels, num_source, config.trainer.block_size, check_every, pair.target.num_entities
    )
    data.relabel(labels, label_weights)
    return Parts(
        module=module,
        data=data,
        em=_build_em(config, visible, decoder, observer, step),
        training=factory(config.training)(visible=visible, decoder=decoder),
        stopping=stopping,
        make_models=make_models,
        lightning=build_lightning(config.trainer),
        local=local_step,
    )


def _build_rule(
    config: DictConfig, visible: Visible, pair: GraphPair, device: torch.device
) -> Rule:
    """Return the rule of the config; the paper's step gets literals as a separate rule."""
    make_rule = factory(config.rule)
    if pair.literals is None or "two_way" in config.em:
        rule: Rule = make_rule(pair=pair, device=device)
        return rule
    if not len(visible.weight_links):
        raise DataError(
            f"em={config.em.name} fits the weights of its rules on links, but there are none. "
            "Without links, use method=paris or em=dual."
        )
    return Composed({config.rule.name: make_rule, "literals": Literals}, pair, device)


def _build_model(model: DictConfig, graph: JointGraph) -> tuple[nn.Module, Objective]:
    encoder = factory(model.encoder)(graph=graph)
    return encoder, factory(model.objective)()


def _build_models(
    make_models: Sequence[Callable[[], tuple[nn.Module, Objective]]],
) -> tuple[nn.Module, Objective | EnsembleObjective]:
    """Return the only encoder with its objective, or an ensemble of all encoders."""
    if len(make_models) == 1:
        return make_models[0]()
    encoders, objectives = zip(*(make() for make in make_models), strict=True)
    return Ensemble(encoders), EnsembleObjective(objectives)


def _build_stopping(config: DictConfig, visible: Visible, decoder: Decoder) -> EarlyStopping | None:
    settings: Any = OmegaConf.select(config, "model.early_stopping")
    if settings is None:
        return None
    links = visible.validation if visible.stopping_links is None else visible.stopping_links
    if not len(links):
        raise ConfigError(
            "model.early_stopping needs validation links, and there are too few links to hold any "
            "out. Add links, or set model.early_stopping=null."
        )
    of_stopping = {key: value for key, value in settings.items() if key != "held_out"}
    stopping: EarlyStopping = make(EarlyStopping, links, decoder, **of_stopping)
    return stopping


def _build_em(
    config: DictConfig,
    visible: Visible,
    decoder: Decoder,
    observer: Observer,
    step: JointStep,
) -> EMCallback:
    normaliser = factory(config.em.normaliser)()
    if config.em.get("evidence") == "dense" and not isinstance(normaliser, SoftmaxNormaliser):
        raise ConfigError(
            f"em.evidence=dense needs q over all targets, which {config.em.normaliser._target_} "
            "does not compute. Use emea.em.normaliser.SoftmaxNormaliser, or em.evidence=candidates."
        )
    return EMCallback(
        visible=visible,
        decoder=decoder,
        normaliser=normaliser,
        step=step,
        observer=observer,
        num_candidates=config.em.num_candidates,
        patience=config.em.get("patience"),
        keep=config.em.get("keep", PaperEMSettings.keep),
    )


def _wrapped(config: DictConfig, step: JointStep, visible: Visible, decoder: Decoder) -> JointStep:
    """Return the step with the rejected pairs and the ensemble of the run."""
    if visible.rejected is not None:
        step = RejectedPairs(step, visible.rejected)
    if OmegaConf.select(config, "ensemble.name") == "independent":
        num_shared = OmegaConf.select(config, "ensemble.shared_fits", default=0)
        first_shared = max(config.em.iterations + 1 - num_shared, 1) if num_shared else None
        return IndependentMembers(step, decoder, first_shared)
    return WeightedMembers(step) if len(member_models(config)) > 1 else step


def _build_step(config: DictConfig, rule: Rule) -> JointStep:
    """Return the step of ``em.two_way``, or the paper's step if there is none or it is off."""
    if not two_way_is_off(config):
        two_way = factory(config.em.two_way)(rule=rule, num_candidates=config.em.num_candidates)
        if not isinstance(two_way, JointStep):
            raise ConfigError(f"em.two_way must be a JointStep, got {config.em.two_way._target_}.")
        return two_way
    settings = {
        key: config.em.get(key, getattr(PaperEMSettings, key))
        for key in ("m_step", "sampling", "ridge", "evidence")
    }
    return PaperStep(rule, seed=config.seed, **settings)


def build_lightning(trainer: DictConfig) -> LightningSettings:
    """Return the callbacks and loggers of the config's ``trainer``; all fits of a run use them.

    Raises:
        ConfigError: If a class cannot be used, or is not a callback or logger.
    """
    return LightningSettings(
        _built(trainer, "callbacks", pl.Callback),
        _built(trainer, "logger", Logger),
        lightning_options(trainer),
    )


def _built(trainer: DictConfig, key: str, kind: type) -> list[Any]:
    """Return the objects of a list of ``_target_`` nodes, each of which must be of this kind."""
    found = []
    for node in OmegaConf.select(trainer, key) or ():
        made = factory(node, keep_name=True)()
        if not isinstance(made, kind):
            raise ConfigError(
                f"trainer.{key} names {node._target_}, which is not a {kind.__name__}."
            )
        found.append(made)
    return found
