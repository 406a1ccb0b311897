"""Settings that have no effect in a composed config, and the reasons."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from omegaconf import DictConfig, OmegaConf

from emea.config.settings.em import TwoWaySettings
from emea.config.settings.groups import OPTIONAL


@dataclass(frozen=True)
class Idle:
    """Describes settings that have no effect under a condition.

    Args:
        keys: The keys of the settings; each includes all keys below it.
        when: The condition, a function of the composed config.
        reason: A text in which ``{config.em.name}`` is replaced by the value in the config.
    """

    keys: tuple[str, ...]
    when: Callable[[DictConfig], bool]
    reason: str


def _value(config: DictConfig, key: str) -> Any:
    return OmegaConf.select(config, key)


def _not_used(group: str) -> Idle:
    return Idle(
        (group,),
        lambda config: group not in config.method.uses,
        f"method={{config.method.name}} does not use {group}",
    )


def _is_neural(config: DictConfig) -> bool:
    return "em" in config.method.uses


def _has_no_em(config: DictConfig) -> bool:
    return _is_neural(config) and not config.em.iterations


def uses_two_way(config: DictConfig) -> bool:
    """Return whether the two-way step replaces the paper's E- and M-step."""
    two_way = _value(config, "em.two_way")
    if not isinstance(two_way, DictConfig) or two_way.get("_target_") != TWO_WAY:
        return False
    return _is_neural(config) and bool(config.em.iterations) and not two_way_is_off(config)


def has_joint_steps(config: DictConfig) -> bool:
    """Return whether a run has M- and E-steps, of either kind."""
    uses = config.method.uses
    return "em" in uses and "rule" in uses and bool(config.em.iterations)


def candidates_key(config: DictConfig) -> str:
    """Return the setting that limits the candidates per entity in the M- and E-steps."""
    return "em.two_way.max_candidates" if uses_two_way(config) else "em.num_candidates"


TWO_WAY = "emea.em.two_way_step.TwoWayStep"


def two_way_is_off(config: DictConfig) -> bool:
    """Return whether a config has no two-way step, or one whose parts are all off."""
    two_way = _value(config, "em.two_way")
    if not isinstance(two_way, DictConfig):
        return True
    if two_way.get("_target_") != TWO_WAY:  # a step of the user
        return False
    names = {one.name for one in fields(TwoWaySettings)}
    return TwoWaySettings(**{k: v for k, v in two_way.items() if k in names}).is_off


def _has_turns(config: DictConfig) -> bool:
    in_iterations = _value(config, "training.turns_per_iteration") and config.em.iterations
    return bool(config.training.turns or in_iterations)


PARIS_INCLUSIONS = ("rule.subsumption_from", "rule.rules.paris.subsumption_from")

IDLE = (
    *(_not_used(group) for group in OPTIONAL),
    Idle(
        (
            *("rule", "em.m_step", "em.sampling", "em.ridge", "em.evidence", "em.patience"),
            *("em.keep", "em.two_way"),
        ),
        _has_no_em,
        "em={config.em.name} with em.iterations=0 does not reason",
    ),
    Idle(
        (
            *("model.epochs_per_iteration", "model.restart", "em.restart_every"),
            "training.turns_per_iteration",
        ),
        lambda config: not _is_neural(config) or not config.em.iterations,
        "there are no EM iterations",
    ),
    Idle(
        ("observed_links",),
        lambda config: not _is_neural(config) or not config.em.iterations,
        "there are no EM iterations between which test links are ranked",
    ),
    Idle(
        (
            *("em.ridge", "em.m_step", "em.sampling", "em.evidence"),
            *("rule.markov_blanket", "rule.subsumption_from"),
        ),
        uses_two_way,
        "em={config.em.name} replaces the paper's E- and M-step, unless all parts of em.two_way "
        "are off",
    ),
    Idle(
        ("em.two_way.tolerance", "em.two_way.max_candidates", "em.two_way.ridge"),
        lambda config: not uses_two_way(config),
        "all parts of em.two_way are off",
    ),
    Idle(
        ("em.two_way.tolerance",),
        lambda config: _value(config, "em.two_way.sweeps") == 1,
        "em.two_way.sweeps=1 updates beliefs once, so there is no change to compare with",
    ),
    Idle(
        ("em.evidence",),
        lambda config: config.rule.get("name") == "avoid_conflict",
        "only the PARIS rule uses the evidence of neighbours",
    ),
    Idle(
        PARIS_INCLUSIONS,
        lambda config: config.protocol.name == "released",
        "protocol=released estimates inclusions of relations from all links",
    ),
    Idle(
        ("protocol.num_unseen_links",),
        lambda config: not config.em.iterations or config.rule.get("name") in ("paris", "none"),
        "only rules with avoid_conflict fit their weights on unseen links",
    ),
    Idle(
        ("protocol.test_pool",),
        lambda config: not uses_two_way(config) or not config.em.iterations,
        "only em=dual restricts its labels and ranking to the test pool",
    ),
    Idle(
        ("model.epochs_per_iteration",),
        lambda config: bool(_value(config, "model.restart")),
        "model.restart=true trains model.initial_epochs in each iteration",
    ),
    Idle(
        ("model.initial_epochs",),
        lambda config: (
            bool(config.initial_from)
            and not (_value(config, "model.restart") and config.em.iterations)
        ),
        "initial_from replaces the first training",
    ),
    Idle(
        ("training.epochs_per_turn", "model.epochs_per_turn"),
        lambda config: not _is_neural(config) or not _has_turns(config),
        "training={config.training.name} has no turns with mined labels",
    ),
    Idle(
        ("ratio",),
        lambda config: config.split.name in ("official", "known", "none"),
        "split={config.split.name} does not use a ratio",
    ),
    Idle(
        ("data.iri_names", "data.attributes"),
        lambda config: _value(config, "literals.name") == "none",
        "literals=none does not use literals; use literals=equal or literals=similar",
    ),
    Idle(
        ("split.validation_from", "split.validation_share"),
        lambda config: _value(config, "split.num_validation") == 0,
        "split.num_validation=0 draws no validation links",
    ),
    Idle(
        ("data.fold", "data.folds"),
        lambda config: config.split.name == "random",
        "split=random does not use the official split of the data; use split=official",
    ),
)
"""Settings under ``trainer`` and ``tracking`` are not listed: they do not change results."""

DECIDING = (
    *("data", "em", "initial_from", "method", "model"),
    *("protocol", "rule", "split", "training", "variant"),
)
"""The first part of the keys that the conditions read."""


def idle_settings(config: DictConfig, overrides: Sequence[str]) -> dict[str, str]:
    """Find the keys of a command line that have no effect in its config, with the reasons.

    Args:
        config: The config that was composed with the overrides.
        overrides: The overrides as typed. Removing a key and choosing no rule always have an
            effect.
    """
    active = [(key, entry.reason) for entry in IDLE if entry.when(config) for key in entry.keys]
    found: dict[str, str] = {}
    for text in overrides:
        typed = text.lstrip("+").partition("=")[0]
        if text.startswith("~") or text == "rule=none":
            continue
        for key, reason in active:
            if typed == key or typed.startswith(f"{key}."):
                found.setdefault(typed, reason.format(config=config))
    return found
