"""Values and combinations that make no sense, refused before anything heavy loads."""

from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig, OmegaConf

from emea.errors import ConfigError

POSITIVE = (
    "model.initial_steps",
    "model.steps_per_iteration",
    "trainer.block_size",
    "em.num_candidates",
    "decoding.k",
)
NOT_NEGATIVE = ("em.iterations", "em.ridge", "split.num_validation")


def check_config(config: DictConfig) -> None:
    """Refuse a config that cannot run, in one sentence.

    Raises:
        ConfigError: names the key, what was given and what is allowed.
    """
    problem = next(_problems(config), None)
    if problem is not None:
        raise ConfigError(problem)


def _problems(config: DictConfig) -> Iterator[str]:
    ratio = _value(config, "ratio.value")
    if not _is_number(ratio) or not 0 < ratio < 1:
        yield f"ratio.value must be a number between 0 and 1 (exclusive), got {ratio}"
    for key in POSITIVE:
        yield from _out_of_range(config, key, at_least=1)
    for key in NOT_NEGATIVE:
        yield from _out_of_range(config, key, at_least=0)
    if _value(config, "em.iterations") and "_target_" not in config.rule:
        yield (
            f"em={config.em.name} needs a rule to measure compatibility: "
            "choose one (rule=paris), or em=none for the neural model alone"
        )


def _out_of_range(config: DictConfig, key: str, at_least: int) -> Iterator[str]:
    value = _value(config, key)
    if value is None:
        return
    if not _is_number(value) or value < at_least:
        yield f"{key} must be a number of at least {at_least}, got {value}"


def _value(config: DictConfig, key: str) -> Any:
    return OmegaConf.select(config, key)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
