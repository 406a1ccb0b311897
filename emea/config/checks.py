"""Checks of a composed config: values, settings that contradict each other, unused settings."""

import re
from collections.abc import Iterator

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from emea.config.composition import error_text, required_groups
from emea.config.groups import GROUPS, OPTIONAL, declared
from emea.config.instantiate import texts_in, untrusted_targets
from emea.config.trainer_settings import trainer_problems
from emea.config.unknown_settings import refusal, unknown_settings
from emea.data.licenses import license_iri
from emea.data.settings import Cardinality
from emea.errors import ConfigError

LOGIN = re.compile(r"^(?!sqlite:)\w[\w+.-]*://([^/?#\s]*|[^/?#\s:]*:(?!\d+[/?#])\S*)@")
"""User and password in an address; a number is a port."""

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
    except (
        OmegaConfBaseException
    ) as error:  # a key is missing, or refers to a missing key
        raise ConfigError(error_text(error)) from error
    if problem is not None:
        raise ConfigError(problem)


def _problems(config: DictConfig) -> Iterator[str]:
    for group in required_groups():
        if OmegaConf.select(config, group) is None:
            yield f"{group} cannot be removed or null. Choose one of its options."
            return
    yield from untrusted_targets(config)
    if config.protocol.name == "strict" and config.protocol.get("_target_") != STRICT:
        yield (
            f"protocol=strict must be {STRICT}, got {config.protocol.get('_target_')}. Give your "
            "own protocol another name."
        )
    # files keep copies of the settings
    if any(map(LOGIN.search, texts_in(OmegaConf.to_container(config)))):
        yield (
            "A setting must not contain a user or password, because files would keep it. For the "
            "store, leave out tracking.uri. Set the variable MLFLOW_TRACKING_URI instead."
        )
    yield from value_problems(config)
    yield from map(refusal, unknown_settings(config))
    if not OmegaConf.select(config, "study").strip():
        yield "study must not be empty. It is the name of the MLflow experiment."
    yield from trainer_problems(config)
    yield from _method_problems(config)
    yield from _two_way_problems(config)
    if config.em.name == "none" and config.em.iterations:
        yield f"em=none has no iterations, got em.iterations={config.em.iterations}. Use em=paper."
    yield from _em_problems(config)
    yield from _training_problems(config)
    yield from _ensemble_problems(config)
    yield from _export_problems(config)
    uses_rule = (
        OmegaConf.select(config, "em.iterations") and "rule" in config.method.uses
    )
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
    if OmegaConf.select(config, "initial_from"):
        yield f"method={name} cannot start from another run's weights. Remove initial_from."


def check_cardinality(method: str, cardinality: Cardinality) -> None:
    """Check that a method can match entities to several others.

    Raises:
        ConfigError: If the method is one-to-one.
    """
    if cardinality == Cardinality.ONE_TO_ONE:
        return
    if method != "paris":
        raise ConfigError(
            f"method={method} is one-to-one, but cardinality={cardinality}. Use "
            "method=paris."
        )


def _two_way_problems(config: DictConfig) -> Iterator[str]:
    if OmegaConf.select(config, "em.two_way") is None:
        return
    if not config.em.two_way.get("features", True):
        yield "em.two_way.features must contain at least one feature, got []."
    if config.em.iterations and config.rule.name not in ("paris", "none"):
        yield (
            f"em={config.em.name} uses the evidence of PARIS and needs rule=paris, "
            f"got rule={config.rule.name}."
        )


def _em_problems(config: DictConfig) -> Iterator[str]:
    has_validation = OmegaConf.select(config, "split.num_validation") != 0
    for key, default in (("em.patience", None), ("em.keep", "last")):
        value = OmegaConf.select(config, key)
        if value not in (None, default) and not has_validation:
            yield f"{key}={value} needs validation links. Increase split.num_validation."
    normaliser = OmegaConf.select(config, "em.normaliser")
    if normaliser != "softmax" and OmegaConf.select(config, "em.two_way") is not None:
        yield (
            f"em={config.em.name} normalises similarities itself, so em.normaliser={normaliser} "
            "has no effect. Use em=paper or em=none."
        )


def _training_problems(config: DictConfig) -> Iterator[str]:
    stopping = OmegaConf.select(config, "model.early_stopping")
    held_out = OmegaConf.is_dict(stopping) and stopping.get("held_out")
    if (
        stopping
        and not held_out
        and not OmegaConf.select(config, "split.num_validation")
    ):
        yield (
            "model.early_stopping needs validation links. Increase split.num_validation, or set "
            "model.early_stopping.held_out."
        )
    if OmegaConf.select(config, "training.turns") and OmegaConf.select(
        config, "initial_from"
    ):
        yield (
            f"training={config.training.name} mines labels during the first training, so "
            "initial_from cannot replace it. Remove initial_from, or use training=sup."
        )


def _ensemble_problems(config: DictConfig) -> Iterator[str]:
    if OmegaConf.select(config, "ensemble.name") in (None, "none"):
        return
    if "model" not in config.method.uses or "em" not in config.method.uses:
        yield f"method={config.method.name} cannot use several encoders. Use ensemble=none."
    if config.training.turns:
        yield "An ensemble cannot mine labels during training. Use training=sup or ensemble=none."
    if OmegaConf.select(config, "initial_from"):
        yield "initial_from has the weights of a single encoder. Use ensemble=none."
    is_fused = config.em.iterations and OmegaConf.select(
        config, "em.two_way.fused_answer"
    )
    if OmegaConf.select(config, "ensemble.name") == "independent" and not is_fused:
        yield (
            "ensemble=independent averages the beliefs of em=one_to_one or em=dual. Choose one "
            "of them with em.iterations above 0 and em.two_way.fused_answer=true."
        )
    others = OmegaConf.select(config, "ensemble.models") or {}
    for key in ("model", *(f"ensemble.models.{name}" for name in others)):
        if OmegaConf.select(config, f"{key}.early_stopping"):
            yield f"An ensemble has no early stopping. Set {key}.early_stopping=null."
    for name, model in others.items():
        if model is not None:
            yield from _schema_problems(
                config, "model", str(model.get("name")), f"ensemble.models.{name}"
            )


def _export_problems(config: DictConfig) -> Iterator[str]:
    try:
        license_iri(OmegaConf.select(config, "export.license"))
    except ConfigError as error:
        yield str(error)
    if OmegaConf.select(config, "export.target_precision") is None:
        return
    if OmegaConf.select(config, "export.threshold") is not None:
        yield "export.target_precision chooses the threshold. Remove export.threshold."
    if not OmegaConf.select(config, "split.num_validation"):
        yield (
            "export.target_precision needs validation links to choose a threshold. "
            "Increase split.num_validation."
        )


DECIDING = ("em", "rule")
"""Groups that decide the method, so that a choice without effect is refused."""

ABSENT = object()

REQUIRED = {
    *(
        "ratio.value",
        "model.initial_epochs",
        "model.epochs_per_iteration",
        "training.turns",
    ),
    *("em.iterations", "em.num_candidates", "export.top_k"),
}
"""Settings that a run cannot start without, also if an option of the user lacks them."""


def value_problems(config: DictConfig) -> Iterator[str]:
    """Yield a sentence for each value that its schema does not allow."""
    for group in ("", *GROUPS):
        option = OmegaConf.select(config, f"{group}.name") if group else None
        yield from _schema_problems(
            config, group, option if isinstance(option, str) else None
        )


def _schema_problems(
    config: DictConfig, group: str, option: str | None, place: str | None = None
) -> Iterator[str]:
    """Yield a sentence for each value that the schema of an option does not allow.

    The arguments after the config are those of `declared`.
    """
    for variants in declared(group, option, place):
        key = variants[0].key
        is_required = key.replace(place or group, group, 1) in REQUIRED
        value = OmegaConf.select(config, key, default=ABSENT)
        if value is ABSENT and not is_required:
            continue  # the option has no such setting
        if OmegaConf.is_config(value):
            value = OmegaConf.to_container(value, resolve=True)
        problems = [one.problem(None if value is ABSENT else value) for one in variants]
        if None not in problems:
            yield str(problems[0])


def unused_group(config: DictConfig, key: str) -> str | None:
    """Return why a key of the command line has no effect, if the method does not use its group.

    Args:
        config: The config that was composed with the key.
        key: A setting or a group. Only the choice of an option of ``em`` or ``rule`` counts; other
            choices may be left over from another method.
    """
    group, _, name = key.partition(".")
    if not name and group not in DECIDING:
        return None
    if group in OPTIONAL and group not in config.method.uses:
        return f"method={config.method.name} does not use {group}"
    if group == "rule" and not config.em.iterations and config.rule.name != "none":
        return f"em={config.em.name} with em.iterations=0 does not reason"
    return None
