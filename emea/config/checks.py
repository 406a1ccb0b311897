"""Checks of a composed config: values against their schema, and settings against each other."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from emea.config.composition import error_text, required_groups
from emea.config.settings.execution import trainer_problems
from emea.config.settings.groups import GROUPS, declared
from emea.config.settings.setting import Setting
from emea.config.trusted_targets import untrusted_targets
from emea.errors import ConfigError

STRICT = "emea.data.protocol.Strict"
"""The only class that may be called strict."""


def check_config(config: DictConfig) -> None:
    """Raise an error if a config cannot run.

    Raises:
        ConfigError: If a value is not allowed. The message names the key, the given value and the
            allowed values.
    """
    try:
        problem = next(_problems(config), None)
    except OmegaConfBaseException as error:  # a key is missing, or refers to a missing key
        raise ConfigError(error_text(error)) from error
    if problem is not None:
        raise ConfigError(problem)


def _problems(config: DictConfig) -> Iterator[str]:
    for group in required_groups():
        if _value(config, group) is None:
            yield f"{group} cannot be removed or null. Choose one of its options."
            return
    yield from untrusted_targets(config)
    if config.protocol.name == "strict" and config.protocol.get("_target_") != STRICT:
        yield (
            f"protocol=strict must be {STRICT}, got {config.protocol.get('_target_')}. Give your "
            "own protocol another name."
        )
    yield from value_problems(config)
    yield from trainer_problems(config)
    yield from _method_problems(config)
    yield from _two_way_problems(config)
    if config.em.name == "none" and config.em.iterations:
        yield f"em=none has no iterations, got em.iterations={config.em.iterations}. Use em=paper."
    if _value(config, "em.patience") and _value(config, "split.num_validation") == 0:
        yield "em.patience needs validation links. Increase split.num_validation."
    if _value(config, "em.keep") == "best" and _value(config, "split.num_validation") == 0:
        yield "em.keep=best needs validation links. Increase split.num_validation."
    yield from _training_problems(config)
    yield from _ensemble_problems(config)
    yield from _export_problems(config)
    uses_rule = _value(config, "em.iterations") and "rule" in config.method.uses
    if uses_rule and "_target_" not in config.rule:
        yield (
            f"em={config.em.name} needs a rule to measure compatibility. Choose one, such as "
            "rule=paris, or use em=none to train only the neural model."
        )


def _method_problems(config: DictConfig) -> Iterator[str]:
    if "em" in config.method.uses:
        return
    name = config.method.name
    if config.protocol.name != "strict":
        yield f"method={name} uses only training links. Remove protocol={config.protocol.name}."
    if _value(config, "initial_from"):
        yield f"method={name} cannot start from another run's weights. Remove initial_from."


def _two_way_problems(config: DictConfig) -> Iterator[str]:
    if _value(config, "em.two_way") is None:
        return
    if not config.em.two_way.get("features", True):
        yield "em.two_way.features must contain at least one feature, got []."
    if config.em.iterations and config.rule.name not in ("paris", "none"):
        yield (
            f"em={config.em.name} uses the evidence of PARIS and needs rule=paris, "
            f"got rule={config.rule.name}."
        )


def _training_problems(config: DictConfig) -> Iterator[str]:
    stopping = _value(config, "model.early_stopping")
    held_out = OmegaConf.is_dict(stopping) and stopping.get("held_out")
    if stopping and not held_out and not _value(config, "split.num_validation"):
        yield (
            "model.early_stopping needs validation links. Increase split.num_validation, or set "
            "model.early_stopping.held_out."
        )
    if _value(config, "training.turns") and _value(config, "initial_from"):
        yield (
            f"training={config.training.name} mines labels during the first training, so "
            "initial_from cannot replace it. Remove initial_from, or use training=sup."
        )


def _ensemble_problems(config: DictConfig) -> Iterator[str]:
    if _value(config, "ensemble.name") in (None, "none"):
        return
    if "model" not in config.method.uses or "em" not in config.method.uses:
        yield f"method={config.method.name} cannot use several encoders. Use ensemble=none."
    if config.training.turns or _value(config, "training.turns_per_iteration"):
        yield "An ensemble cannot mine labels during training. Use training=sup or ensemble=none."
    if _value(config, "initial_from"):
        yield "initial_from has the weights of a single encoder. Use ensemble=none."
    if _value(config, "ensemble.name") == "independent":
        if not config.em.iterations or not _value(config, "em.two_way.fused_answer"):
            yield (
                "ensemble=independent averages the beliefs of em=one_to_one or em=dual. Choose one "
                "of them with em.iterations above 0 and em.two_way.fused_answer=true."
            )
        elif _value(config, "em.two_way.memory"):
            yield "ensemble=independent has no running mean. Set em.two_way.memory=0."
    others = _value(config, "ensemble.models") or {}
    for key in ("model", *(f"ensemble.models.{name}" for name in others)):
        if _value(config, f"{key}.early_stopping"):
            yield f"An ensemble has no early stopping. Set {key}.early_stopping=null."
    for name, model in others.items():
        if model is not None:
            yield from _schema_problems(
                config, "model", str(model.get("name")), f"ensemble.models.{name}"
            )


def _export_problems(config: DictConfig) -> Iterator[str]:
    if _value(config, "export.target_precision") is None:
        return
    if _value(config, "export.threshold") is not None:
        yield "export.target_precision chooses the threshold. Remove export.threshold."
    if not _value(config, "split.num_validation"):
        yield (
            "export.target_precision needs validation links to choose a threshold. "
            "Increase split.num_validation."
        )


ABSENT = object()


def value_problems(config: DictConfig) -> Iterator[str]:
    """Yield a sentence for each value that its schema does not allow."""
    for group in ("", *GROUPS):
        option = OmegaConf.select(config, f"{group}.name") if group else None
        yield from _schema_problems(config, group, option if isinstance(option, str) else None)


def _schema_problems(
    config: DictConfig, group: str, option: str | None, place: str | None = None
) -> Iterator[str]:
    """Yield a sentence for each value that the schema of an option does not allow.

    Args:
        config: The config.
        group: The config group of the option.
        option: The name of the option.
        place: The key of the option in the config; ``None``: that of its group.
    """
    for variants in declared(group, option):
        if place is not None:
            variants = tuple(
                replace(one, key=place + one.key.removeprefix(group)) for one in variants
            )
        value = OmegaConf.select(config, variants[0].key, default=ABSENT)
        problem = _value_problem(value, variants)
        if problem is not None:
            yield problem


def _value_problem(value: Any, variants: tuple[Setting, ...]) -> str | None:
    """Return a sentence if none of the declarations of a key allows the value."""
    if value is ABSENT:
        if not all(one.required for one in variants):
            return None  # the class has a default, or the option has no such setting
        value = None
    if OmegaConf.is_config(value):
        value = OmegaConf.to_container(value, resolve=True)
    problems = [one.problem(value) for one in variants]
    return None if None in problems else problems[0]


def _value(config: DictConfig, key: str) -> Any:
    return OmegaConf.select(config, key)
