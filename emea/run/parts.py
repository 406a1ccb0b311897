"""Builds the objects of one run from its config."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from pytorch_lightning.loggers import Logger
from torch import Tensor, nn

from emea.answer.decision import Answering
from emea.answer.decoding import BestAnswer, ManyAnswer
from emea.config.checks import check_config
from emea.config.composition import error_text
from emea.config.instantiate import factory, made
from emea.config.run_config import ModelConfig, RunConfig, typed
from emea.config.settings.cardinality import Cardinality
from emea.config.settings.em import DualEMSettings
from emea.config.settings.execution import ExportSettings, lightning_options
from emea.config.settings.model import StoppingSettings
from emea.data.arrays import IntArray
from emea.data.graph_pair import GraphPair, LiteralMatches
from emea.data.protocol import Visible
from emea.data.split import Split
from emea.em.em_callback import EMCallback, Observer
from emea.em.joint import (
    ExcludedPairs,
    JointStep,
    LocalStep,
    NoStep,
    of_other_kinds,
    of_rejected,
)
from emea.em.local import LocalUpdate
from emea.em.members import IndependentMembers, WeightedMembers
from emea.em.normaliser import Normaliser
from emea.em.paper_step import PaperStep
from emea.em.witnesses import Witnesses
from emea.encoders.joint_graph import JointGraph, join_graphs
from emea.encoders.objective import Ensemble, Objective
from emea.errors import ConfigError, DataError
from emea.fit.alignment_module import AlignmentModule
from emea.fit.lightning_trainer import LightningSettings
from emea.fit.step_block import LabelDataModule
from emea.fit.training_parts import EarlyStopping, TrainingParts
from emea.matching.similarity import Decoder
from emea.rules.rule import Rule

MakeModel = Callable[[], tuple[nn.Module, Objective]]


@dataclass(frozen=True, eq=False)
class Parts(TrainingParts):
    """The objects of a run, of which the EM callback is the one between the fits.

    Args:
        local: The part of the joint step that restricts it to some entities; ``None`` if it
            computes all of them.
    """

    em: EMCallback
    local: LocalStep | None = None


def draw_split(config: DictConfig, pair: GraphPair) -> Split:
    """Return the split of a pair's links, as configured."""
    split: Split = made(Split, config.split, pair)
    if split.has_few and RunConfig.of(config).num_shared_fits is not None:
        split = replace(split, supervision=split.supervision.crossed())
    return split if pair.unmatched is None else replace(split, unmatched=pair.unmatched)


def with_literals(config: DictConfig, pair: GraphPair) -> GraphPair:
    """Return the pair with its matched literals if the config uses them; links are not used.

    A pair that has them already is returned unchanged.
    """
    if "_target_" not in config.literals or pair.literals is not None:
        return pair
    literals: LiteralMatches = factory(config.literals)()(pair)
    return replace(pair, literals=literals)


def export_settings(config: DictConfig) -> ExportSettings:
    """Return the settings of the answer."""
    return typed(ExportSettings, config.get("export"))


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
    cardinality = Cardinality(config.get("cardinality", Cardinality.ONE_TO_ONE))
    if cardinality != Cardinality.ONE_TO_ONE:
        return ManyAnswer(cardinality)
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
    settings: RunConfig,
    pair: GraphPair,
    visible: Visible,
    observer: Observer,
    device: torch.device,
    local: LocalUpdate | None = None,
) -> Parts:
    """Return encoder, labels and callbacks; they get only the visible links.

    Args:
        settings: The settings of the run.
        pair: The graphs.
        visible: The links that training and EM may use.
        observer: Called after each fit.
        device: The device of the rule.
        local: Entities to which EM is restricted; ``None`` means all.
    """
    nodes, seed = settings.nodes, settings.own.seed
    torch.manual_seed(seed)
    stops = settings.models[0].early_stopping
    if stops is not None and stops.held_out:
        visible = visible.holding_out(stops.held_out, seed)
    visible = replace(visible, in_folds=settings.in_folds)
    graph = join_graphs(pair)
    make_models = [partial(_build_model, model, graph) for model in settings.models]
    module = _build_module(settings, pair, make_models)
    decoder = factory(nodes.similarity)(search=factory(nodes.search)())
    uses_rule = settings.em.iterations and settings.uses("rule")
    rule = _build_rule(nodes, visible, pair, device) if uses_rule else None
    step: JointStep = NoStep() if rule is None else _build_step(settings, rule)
    local_step = None if local is None else LocalStep(step, local)
    step = local_step or step
    if (kinds := pair.matched_kinds) is not None:
        step = ExcludedPairs(step, of_other_kinds(kinds))
    step = _wrapped(settings, step, visible, decoder)
    labels = [initial_labels(view, pair) for view in visible.of_members(len(make_models))]
    data = LabelDataModule(
        visible.encoder_links,
        pair.source.num_entities,
        settings.trainer.block_size,
        None if stops is None else stops.every,
        pair.target.num_entities,
    )
    data.relabel(labels if visible.has_folds else labels[:1])
    return Parts(
        module=module,
        data=data,
        em=_build_em(settings, visible, decoder, observer, step),
        training=factory(nodes.training)(visible=visible, decoder=decoder),
        stopping=None if stops is None else _build_stopping(stops, visible, decoder),
        make_models=make_models,
        lightning=build_lightning(nodes.trainer),
        local=local_step,
    )


def _build_module(
    settings: RunConfig, pair: GraphPair, make_models: Sequence[MakeModel]
) -> AlignmentModule:
    """Return the module of the only encoder, or that of an ensemble of all encoders."""
    encoders, objectives = zip(*(make() for make in make_models), strict=True)
    is_one = len(encoders) == 1
    deterministic = torch.are_deterministic_algorithms_enabled()
    return AlignmentModule(
        encoder=encoders[0] if is_one else Ensemble(encoders),
        objective=objectives[0] if is_one else nn.ModuleList(objectives),
        optimizer=[
            factory(model.optimizer) if model.optimizer else None for model in settings.models
        ],
        num_source=pair.source.num_entities,
        num_target=pair.target.num_entities,
        # sums in a fixed order wait for the device, which a CUDA graph cannot do
        cuda_graph=settings.trainer.cuda_graph and not deterministic,
    )


def _build_rule(
    config: DictConfig, visible: Visible, pair: GraphPair, device: torch.device
) -> Rule:
    """Return the rule of the config."""
    if pair.literals is not None and "two_way" not in config.em and not len(visible.weight_links):
        raise DataError(
            f"em={config.em.name} fits the weights of its rules on links, but there are none. "
            "Without links, use method=paris or em=dual."
        )
    rule: Rule = factory(config.rule)(pair=pair, device=device)
    return rule


def _build_model(model: ModelConfig, graph: JointGraph) -> tuple[nn.Module, Objective]:
    encoder = factory(model.encoder)(graph=graph)
    return encoder, factory(model.objective)()


def _build_stopping(
    settings: StoppingSettings, visible: Visible, decoder: Decoder
) -> EarlyStopping:
    links = visible.validation if visible.stopping_links is None else visible.stopping_links
    if not len(links):
        raise ConfigError(
            "model.early_stopping needs validation links, and there are too few links to hold any "
            "out. Add links, or set model.early_stopping=null."
        )
    return EarlyStopping(
        links, decoder, every=settings.every, patience=settings.patience, start=settings.start
    )


def _build_em(
    settings: RunConfig,
    visible: Visible,
    decoder: Decoder,
    observer: Observer,
    step: JointStep,
) -> EMCallback:
    known = {"name", *(one.name for one in fields(DualEMSettings))}
    if unknown := sorted(set(settings.nodes.em) - known):
        raise ConfigError(f"em does not accept its settings: {', '.join(unknown)} is unknown")
    return EMCallback(
        visible=visible,
        decoder=decoder,
        normaliser=Normaliser(),
        step=step,
        observer=observer,
        settings=settings.em,
    )


def _wrapped(settings: RunConfig, step: JointStep, visible: Visible, decoder: Decoder) -> JointStep:
    """Return the step with the rejected pairs, the ensemble and the witnesses of the run."""
    is_local = isinstance(step, LocalStep)
    if visible.rejected is not None:
        step = ExcludedPairs(step, of_rejected(visible.rejected))
    num_shared, last_own = settings.num_shared_fits, None
    if num_shared is not None:
        first_shared = max(settings.em.iterations + 1 - num_shared, 1) if num_shared else None
        last_own = None if first_shared is None else first_shared - 1
        step = IndependentMembers(step, decoder, first_shared)
    elif len(settings.models) > 1:
        step = WeightedMembers(step)
    # a local update keeps the probabilities of most entities
    return step if is_local or not settings.em.iterations else Witnesses(step, last_own)


def _build_step(settings: RunConfig, rule: Rule) -> JointStep:
    """Return the step of ``em.two_way``, or the paper's step if there is none."""
    em, nodes = settings.em, settings.nodes
    if nodes.em.get("two_way") is not None:
        number = em.num_candidates
        two_way: JointStep = made(JointStep, nodes.em.two_way, rule=rule, num_candidates=number)
        return two_way
    return PaperStep(rule, em)


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
    for node in trainer.get(key) or ():
        one = factory(node, keep_name=True)()
        if not isinstance(one, kind):
            raise ConfigError(
                f"trainer.{key} names {node._target_}, which is not a {kind.__name__}."
            )
        found.append(one)
    return found
