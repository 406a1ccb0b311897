"""Builds the objects of one run from its config."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from torch import Tensor, nn

from emea.answer.decision import Answering
from emea.answer.decoding import BestAnswer, ManyAnswer
from emea.answer.settings import ExportSettings
from emea.config.checks import check_config
from emea.config.composition import error_text
from emea.config.instantiate import Option, make
from emea.config.run_config import LightningConfig, ModelConfig, RunConfig, typed
from emea.data.arrays import IntArray, are_among
from emea.data.graph_pair import GraphPair, LiteralMatches
from emea.data.protocol import Visible, answer_pool
from emea.data.settings import Cardinality
from emea.data.split import Split
from emea.em.best_iteration import BestIteration
from emea.em.earlier_fits import EarlierFits
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
from emea.em.normaliser import NORMALISERS
from emea.em.paper_step import PaperStep
from emea.em.settings import TwoWaySettings
from emea.em.two_way_step import TwoWayStep
from emea.encoders.joint_graph import JointGraph, join_graphs
from emea.encoders.objective import Ensemble, Objective
from emea.errors import ConfigError, DataError
from emea.fit.alignment_module import AlignmentModule
from emea.fit.lightning_settings import LightningSettings
from emea.fit.settings import StoppingSettings
from emea.fit.step_block import LabelDataModule
from emea.fit.training_parts import FitStopping, TrainingParts
from emea.matching.beliefs import Beliefs
from emea.matching.rejected_pairs import RejectedPairs
from emea.matching.similarity import Decoder
from emea.rules.rule import Rule

Given = TypeVar("Given")

MakeModel = Callable[[], tuple[nn.Module, Objective]]


@dataclass(frozen=True, eq=False)
class BuiltRun(TrainingParts):
    """The objects of a run, of which the EM callback is the one between the fits.

    Args:
        local: The part of the joint step that restricts it to some entities; ``None`` if it
            computes all of them.
    """

    em: EMCallback
    local: LocalStep | None = None


def draw_split(settings: RunConfig, pair: GraphPair) -> Split:
    """Return the split of a pair's links, as configured."""
    split: Split = settings.option("split").make(Split, pair)
    if split.has_few and settings.num_shared_fits is not None:
        split = replace(split, supervision=split.supervision.crossed())
    return split if pair.unmatched is None else replace(split, unmatched=pair.unmatched)


def with_literals(settings: RunConfig, pair: GraphPair) -> GraphPair:
    """Return the pair with its matched literals if the config uses them; links are not used.

    A pair that has them already is returned unchanged.
    """
    option = settings.option("literals")
    if option.target is None or pair.literals is not None:
        return pair
    literals: LiteralMatches = option()(pair)
    if pair.rejected is not None:
        literals = without_anchors(literals, RejectedPairs(pair.rejected))
    return replace(pair, literals=literals)


def without_anchors(
    literals: LiteralMatches, rejected: RejectedPairs
) -> LiteralMatches:
    """Return the matched literals without anchors that a person rejected."""
    kept = ~rejected.among(literals.anchors)
    return replace(
        literals,
        anchors=literals.anchors[kept],
        anchor_probs=literals.anchor_probs[kept],
        anchor_ways=list(compress(literals.anchor_ways, kept.tolist())),
    )


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


def build_answering(settings: RunConfig) -> Answering:
    """Return the decoder of a run; baselines without decoding keep their best candidates."""
    if settings.cardinality != Cardinality.ONE_TO_ONE:
        return ManyAnswer(settings.cardinality)
    if not settings.uses("decoding"):
        return BestAnswer()
    answering: Answering = settings.option("decoding")()
    return answering


def accepted_links(settings: RunConfig, labels: Tensor, split: Split) -> Tensor:
    """Return the links that are certain in the answer, ``[n, 2]``.

    In addition to the labels of the method, these are the validation links if all links are known
    (``split=known``): someone who gives a link expects it in the answer, although no encoder was
    trained on it.

    Args:
        settings: The settings of the run.
        labels: ``[num_labels, 2]`` links with probability 1 in the run.
        split: The split of the links.
    """
    if settings.name("split") != "known":
        return labels
    validation = split.supervision.validation
    further = validation[~are_among(validation, labels.cpu().numpy())]
    return torch.cat([labels, torch.from_numpy(further.copy()).to(labels.device)])


def answerable(settings: RunConfig, beliefs: Beliefs, split: Split) -> Beliefs:
    """Return the beliefs about pairs that the answer can contain under the protocol."""
    pool = answer_pool(settings.name("protocol"), split)
    if pool is None:
        return beliefs
    sources, targets = (
        torch.from_numpy(side.copy()).to(beliefs.targets.device) for side in pool
    )
    return beliefs.within(sources, targets)


def decoder_name(settings: RunConfig) -> str:
    """Return the name of the decoder, or ``none`` if the method does not use decoding."""
    return settings.name("decoding") if settings.uses("decoding") else "none"


def initial_labels(visible: Visible, pair: GraphPair) -> tuple[IntArray, Tensor | None]:
    """Return the links of the first fit and their weights: training links, then anchors."""
    if pair.literals is None:
        return visible.encoder_links, None
    anchors = pair.literals.anchors
    train = visible.encoder_links
    known = visible.train
    free = ~np.isin(anchors[:, 0], known[:, 0]) & ~np.isin(anchors[:, 1], known[:, 1])
    if not len(train) and not free.any():
        raise DataError(
            f"{pair.name} has no links to learn from, and no literal value that exactly one entity "
            "of each graph has. Add known links."
        )
    weights = np.concatenate([np.ones(len(train)), pair.literals.anchor_probs[free]])
    return np.concatenate([train, anchors[free]]), torch.from_numpy(weights).float()


def _build_labels(
    settings: RunConfig, pair: GraphPair, visible: Visible, num_members: int
) -> LabelDataModule:
    """Return the labels of the first fit, those of each encoder if they have folds."""
    stops = settings.models[0].early_stopping
    data = LabelDataModule(
        visible.encoder_links,
        pair.source.num_entities,
        settings.trainer.block_size,
        None if stops is None else stops.every,
        pair.target.num_entities,
    )
    labels = [initial_labels(view, pair) for view in visible.of_members(num_members)]
    data.relabel(labels if visible.has_folds else labels[:1])
    return data


def build_run(
    settings: RunConfig,
    pair: GraphPair,
    visible: Visible,
    *,
    observer: Observer,
    device: torch.device,
    local: LocalUpdate | None = None,
) -> BuiltRun:
    """Return encoder, labels and callbacks; they get only the visible links.

    The step that reasons is wrapped by up to five others. `_wrappers` has their order and its
    reasons.

    Args:
        settings: The settings of the run.
        pair: The graphs.
        visible: The links that training and EM may use.
        observer: Called after each fit.
        device: The device of the rule.
        local: Entities to which EM is restricted; ``None`` means all.
    """
    # before the encoders, which draw their first weights when they are built
    torch.manual_seed(settings.own.seed)
    stops = settings.models[0].early_stopping
    visible = _without_held_out(settings, visible)
    graph = join_graphs(pair)
    rejected = None if visible.rejected is None else RejectedPairs(visible.rejected)
    make_models = [
        partial(_build_model, model, graph, rejected) for model in settings.models
    ]
    module = _build_module(settings, pair, make_models)
    decoder = settings.option("similarity")(search=settings.option("search")())
    uses_rule = settings.em.iterations and settings.uses("rule")
    rule = _build_rule(settings, visible, pair, device) if uses_rule else None
    step: JointStep = NoStep() if rule is None else _build_step(settings, rule)
    layers = [step]
    for wrapper in _wrappers(settings, pair, visible, decoder, local):
        if wrapper.applies:
            layers.append(wrapper.wrap(layers[-1]))
    return BuiltRun(
        module=module,
        data=_build_labels(settings, pair, visible, len(make_models)),
        em=_build_em(settings, visible, decoder, observer, layers[-1]),
        training=settings.option("training")(visible=visible, decoder=decoder),
        stopping=None if stops is None else _build_stopping(stops, visible, decoder),
        make_models=make_models,
        lightning=build_lightning(settings.lightning),
        local=next((one for one in layers if isinstance(one, LocalStep)), None),
    )


def _without_held_out(settings: RunConfig, visible: Visible) -> Visible:
    """Return the links of the encoders: without those of early stopping, and in folds if set."""
    stops = settings.models[0].early_stopping
    if stops is not None and stops.held_out:
        visible = visible.holding_out(stops.held_out, settings.own.seed)
    return replace(visible, in_folds=settings.in_folds)


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
            model.optimizer.factory() if model.optimizer else None
            for model in settings.models
        ],
        num_source=pair.source.num_entities,
        num_target=pair.target.num_entities,
        # sums in a fixed order wait for the device, which a CUDA graph cannot do
        cuda_graph=settings.trainer.cuda_graph and not deterministic,
    )


def _build_rule(
    settings: RunConfig, visible: Visible, pair: GraphPair, device: torch.device
) -> Rule:
    """Return the rule of the run."""
    has_two_way = "two_way" in settings.option("em").values
    if pair.literals is not None and not has_two_way and not len(visible.weight_links):
        raise DataError(
            f"em={settings.name('em')} fits the weights of its rules on links, but there are none. "
            "Without links, use method=paris or em=dual."
        )
    rule: Rule = settings.option("rule")(pair=pair, device=device)
    return rule


def _build_model(
    model: ModelConfig, graph: JointGraph, rejected: RejectedPairs | None
) -> tuple[nn.Module, Objective]:
    encoder = model.encoder(graph=graph)
    objective: Objective = model.objective()
    objective.rejected = rejected
    return encoder, objective


def _build_stopping(
    settings: StoppingSettings, visible: Visible, decoder: Decoder
) -> FitStopping:
    links = (
        visible.validation if visible.stopping_links is None else visible.stopping_links
    )
    if not len(links):
        raise ConfigError(
            "model.early_stopping needs validation links, and there are too few links to hold any "
            "out. Add links, or set model.early_stopping=null."
        )
    return FitStopping(
        links,
        decoder,
        every=settings.every,
        patience=settings.patience,
        start=settings.start,
    )


def _build_em(
    settings: RunConfig,
    visible: Visible,
    decoder: Decoder,
    observer: Observer,
    step: JointStep,
) -> EMCallback:
    em = settings.em
    best = BestIteration(em.keep == "best", em.patience)
    if best.is_used and step.reasons and not len(visible.held_out):
        key = "em.keep=best" if best.keeps else "em.patience"
        raise ConfigError(
            f"{key} needs validation links that no encoder is trained on, and there are none. Add "
            "links, or use em.keep=last em.patience=null."
        )
    return EMCallback(
        visible=visible,
        decoder=decoder,
        normaliser=NORMALISERS[em.normaliser](),
        step=step,
        observer=observer,
        settings=em,
        best=best,
    )


class Wrapper(NamedTuple):
    """A wrapper of the step that reasons.

    Args:
        wrap: Puts the wrapper around a step.
        applies: Whether the run uses it.
        reason: Why it has this place in the order.
    """

    wrap: Callable[[JointStep], JointStep]
    applies: bool
    reason: str


def _wrappers(
    settings: RunConfig,
    pair: GraphPair,
    visible: Visible,
    decoder: Decoder,
    local: LocalUpdate | None,
) -> list[Wrapper]:
    """Return the wrappers of a run, from the inside to the outside.

    Their order is part of the meaning of a run.
    """
    kinds, rejected = pair.matched_kinds, visible.rejected
    is_independent = settings.num_shared_fits is not None
    first_shared = _first_shared(settings)
    last_own = None if first_shared is None else first_shared - 1
    return [
        Wrapper(
            lambda step: LocalStep(step, _given(local)),
            local is not None,
            "gives the step the entities to recompute, and adds the former beliefs of the "
            "others, to which all exclusions must also apply",
        ),
        Wrapper(
            lambda step: ExcludedPairs(step, of_other_kinds(_given(kinds))),
            kinds is not None,
            "inside of the ensemble, so that no encoder gets a pair of two kinds as a label",
        ),
        Wrapper(
            lambda step: ExcludedPairs(step, of_rejected(_given(rejected))),
            rejected is not None,
            "as before; the order of both exclusions does not matter",
        ),
        Wrapper(
            lambda step: IndependentMembers(step, decoder, first_shared),
            is_independent,
            "calls the steps inside once per encoder, and averages their reports",
        ),
        Wrapper(
            WeightedMembers,
            len(settings.models) > 1 and not is_independent,
            "weighs the encoders before one call of the steps inside",
        ),
        Wrapper(
            lambda step: EarlierFits(step, last_own),
            # only the two-way step ranks pairs; a local update keeps most probabilities
            settings.two_way is not None
            and bool(settings.em.iterations)
            and local is None,
            "keeps the beliefs of the whole ensemble; inside of it, one memory would mix those of "
            "all encoders",
        ),
    ]


def _first_shared(settings: RunConfig) -> int | None:
    """Return the first fit in which independent encoders share labels; never the first training."""
    number = settings.num_shared_fits
    return max(settings.em.iterations + 1 - number, 1) if number else None


def _given(value: Given | None) -> Given:
    """Return a value that a wrapper needs; the wrapper is only used if there is one."""
    assert value is not None
    return value


def _build_step(settings: RunConfig, rule: Rule) -> JointStep:
    """Return the step of ``em.two_way``, or the paper's step if there is none."""
    em = settings.em
    if settings.two_way is not None:
        return build_two_way(settings.two_way, rule, em.num_candidates)
    return PaperStep(rule, em)


def build_two_way(option: Option, rule: Rule, num_candidates: int) -> JointStep:
    """Return the step of ``em.two_way``; a class of the user gets its settings as arguments."""
    arguments: dict[str, Any] = {"rule": rule, "num_candidates": num_candidates}
    named = option.named_class()
    if getattr(named, "__init__", None) is not TwoWayStep.__init__:
        step: JointStep = option.make(JointStep, **arguments)
        return step
    settings = typed(TwoWaySettings, option.values)
    own: JointStep = make(named, settings=settings, **arguments)
    return own


def build_lightning(config: LightningConfig) -> LightningSettings:
    """Return the callbacks and loggers of the config's ``trainer``; all fits of a run use them.

    Raises:
        ConfigError: If a class cannot be used, or is not a callback or logger.
    """
    callbacks: list[Any] = []
    loggers: list[Any] = []
    if config.callbacks or config.loggers:
        # imported only if needed: it takes as long as torch
        import pytorch_lightning as pl
        from pytorch_lightning.loggers import Logger

        callbacks = _built(config.callbacks, "callbacks", pl.Callback)
        loggers = _built(config.loggers, "logger", Logger)
    return LightningSettings(callbacks, loggers, dict(config.options))


def _built(options: Sequence[Option], key: str, kind: type) -> list[Any]:
    """Return the objects of a list under ``trainer``, each of which must be of this kind."""
    found = []
    for option in options:
        one = option()
        if not isinstance(one, kind):
            raise ConfigError(
                f"trainer.{key} names {option.target}, which is not a {kind.__name__}."
            )
        found.append(one)
    return found
