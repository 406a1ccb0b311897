"""Conditions on a composed config: which steps it has, and when settings have no effect."""

from typing import Any

from omegaconf import DictConfig, OmegaConf

from emea.config.settings.setting import Idle

TWO_WAY_STEP = "emea.em.two_way_step.TwoWayStep"


def value_of(config: DictConfig, key: str) -> Any:
    """Return a value, or ``None`` if the config does not have the key."""
    return OmegaConf.select(config, key)


def has_iterations(config: DictConfig) -> bool:
    """Return whether a neural model is trained again in EM iterations."""
    return "em" in config.method.uses and bool(config.em.iterations)


def has_joint_steps(config: DictConfig) -> bool:
    """Return whether a run has M- and E-steps, of either kind."""
    return has_iterations(config) and "rule" in config.method.uses


def uses_two_way(config: DictConfig) -> bool:
    """Return whether the two-way step replaces the paper's E- and M-step."""
    return value_of(config, "em.two_way._target_") == TWO_WAY_STEP and has_iterations(config)


def _replaces_first_training(config: DictConfig) -> bool:
    trains_again = value_of(config, "model.restart") and config.em.iterations
    return bool(config.initial_from) and not trains_again


NO_EM = Idle(
    "em={config.em.name} with em.iterations=0 does not reason",
    lambda config: "em" in config.method.uses and not config.em.iterations,
)
NO_ITERATIONS = Idle("there are no EM iterations", lambda config: not has_iterations(config))
REPLACED = Idle("em={config.em.name} replaces the paper's E- and M-step", uses_two_way)
NO_NEIGHBOURS = Idle(
    "only the PARIS rule uses the evidence of neighbours",
    lambda config: config.rule.get("name") == "avoid_conflict",
)
NO_TEST_POOL = Idle(
    "only em=dual restricts its labels and ranking to the test pool",
    lambda config: not uses_two_way(config),
)
RESTARTS = Idle(
    "model.restart=true trains model.initial_epochs in each iteration",
    lambda config: bool(value_of(config, "model.restart")),
)
OTHER_WEIGHTS = Idle("initial_from replaces the first training", _replaces_first_training)
NO_TURNS = Idle(
    "training={config.training.name} has no turns with mined labels",
    lambda config: "em" not in config.method.uses or not config.training.turns,
)
NO_RATIO = Idle(
    "split={config.split.name} does not use a ratio",
    lambda config: config.split.name in ("official", "known", "none"),
)
NO_LITERALS = Idle(
    "literals=none does not use literals; use literals=equal or literals=similar",
    lambda config: value_of(config, "literals.name") == "none",
)
NO_VALIDATION = Idle(
    "split.num_validation=0 draws no validation links",
    lambda config: value_of(config, "split.num_validation") == 0,
)
NOT_OFFICIAL = Idle(
    "split=random does not use the official split of the data; use split=official",
    lambda config: config.split.name == "random",
)
