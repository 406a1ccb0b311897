"""Values and combinations that make no sense, refused before anything heavy loads."""

from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from emea.config.files import required_groups, sentence
from emea.config.ranges import outside_limits
from emea.config.trainer_settings import trainer_problems
from emea.config.trusted_targets import untrusted_targets
from emea.config.two_way import FEATURES
from emea.errors import ConfigError

STRICT = "emea.em.protocol.Strict"
"""What alone may call itself strict."""

EXPORT_FORMATS = ("tsv", "nt", "sssom", "jsonl")
"""Those of ``emea.answer.formats``, likewise."""


def check_config(config: DictConfig) -> None:
    """Refuse a config that cannot run, in one sentence.

    Raises:
        ConfigError: names the key, what was given and what is allowed.
    """
    try:
        problem = next(_problems(config), None)
    except OmegaConfBaseException as error:  # a key is missing, or refers to one that is not there
        raise ConfigError(sentence(error)) from error
    if problem is not None:
        raise ConfigError(problem)


def _problems(config: DictConfig) -> Iterator[str]:
    for group in required_groups():
        if _value(config, group) is None:
            yield f"{group} must be chosen: it cannot be removed or null"
            return
    yield from untrusted_targets(config)
    if config.protocol.name == "strict" and config.protocol.get("_target_") != STRICT:
        yield (
            f"protocol=strict is {STRICT} alone, got {config.protocol.get('_target_')}; "
            "give a protocol of your own a name of its own"
        )
    yield from outside_limits(config)
    yield from trainer_problems(config)
    yield from _method_problems(config)
    yield from _two_way_problems(config)
    if config.em.name == "none" and config.em.iterations:
        yield f"em=none has no iterations, got em.iterations={config.em.iterations}; use em=paper"
    if _value(config, "em.patience") and not _value(config, "split.num_validation"):
        yield "em.patience needs validation links to watch: raise split.num_validation"
    yield from _training_problems(config)
    yield from _export_problems(config)
    uses_rule = _value(config, "em.iterations") and "rule" in config.method.uses
    if uses_rule and "_target_" not in config.rule:
        yield (
            f"em={config.em.name} needs a rule to measure compatibility: "
            "choose one (rule=paris), or em=none for the neural model alone"
        )


def _method_problems(config: DictConfig) -> Iterator[str]:
    if "em" in config.method.uses:
        return
    name = config.method.name
    if config.protocol.name != "strict":
        yield f"method={name} sees training links alone: it has protocol=strict and no other"
    if _value(config, "initial_from"):
        yield f"method={name} cannot start from another run's weights: leave initial_from out"


def _two_way_problems(config: DictConfig) -> Iterator[str]:
    if _value(config, "em.two_way") is None:
        return
    features = _value(config, "em.two_way.features")
    named = set(features) if isinstance(features, ListConfig) else set()
    if not named or named - set(FEATURES):
        names = ", ".join(FEATURES)
        yield f"em.two_way.features must name some of {names}, got {features}"
    if config.em.iterations and config.rule.name not in ("paris", "none"):
        yield (
            f"em={config.em.name} reasons with the evidence of PARIS: it needs rule=paris, "
            f"got rule={config.rule.name}"
        )


def _training_problems(config: DictConfig) -> Iterator[str]:
    restart = _value(config, "model.restart")
    if restart not in (None, True, False):
        yield f"model.restart must be true or false, got {restart}"
    for key in ("turns_per_iteration", "epochs_per_turn"):
        if key in config.training and config.training[key] is None:
            yield f"training.{key} must be a whole number, got null"
    stopping = _value(config, "model.early_stopping")
    if stopping is not None and not _is_filled(stopping):
        yield (
            "model.early_stopping must be null or such as {every: 10, patience: 2}, "
            f"got {stopping}"
        )
    elif stopping is not None and not _value(config, "split.num_validation"):
        yield "model.early_stopping needs validation links to look at: raise split.num_validation"
    if _value(config, "training.turns") and _value(config, "initial_from"):
        yield (
            f"training={config.training.name} mines labels during the first training, so "
            "initial_from cannot replace it; leave initial_from out, or use training=sup"
        )


def _export_problems(config: DictConfig) -> Iterator[str]:
    formats = _value(config, "export.formats")
    if not isinstance(formats, ListConfig) or set(formats) - set(EXPORT_FORMATS):
        yield (
            f"export.formats must be a list of some of {', '.join(EXPORT_FORMATS)}, such as "
            f"export.formats=[nt,jsonl], got {formats}"
        )
    if _value(config, "export.target_precision") is None:
        return
    if _value(config, "export.threshold") is not None:
        yield "export.target_precision chooses the threshold: leave export.threshold out"
    if not _value(config, "split.num_validation"):
        yield (
            "export.target_precision needs validation links to choose a threshold by: "
            "raise split.num_validation"
        )


def _is_filled(node: Any) -> bool:
    return isinstance(node, DictConfig) and all(value is not None for value in node.values())


def _value(config: DictConfig, key: str) -> Any:
    return OmegaConf.select(config, key)
