"""What is to be answered, and in which files."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from emea.errors import ConfigError
from emea.pipeline.config_errors import sentence
from emea.pipeline.validation import check_config


@dataclass(frozen=True)
class ExportSettings:
    """Of the node ``export``.

    Args:
        formats: what to write beside the tab-separated files.
        top_k: candidates of each source entity, in formats that have a place for them.
        threshold: least probability of an answer.
        target_precision: on the validation links; it chooses the threshold.
    """

    formats: tuple[str, ...] = ("tsv",)
    top_k: int = 1
    threshold: float | None = None
    target_precision: float | None = None

    def with_given(
        self,
        formats: Sequence[str] | None = None,
        top_k: int | None = None,
        threshold: float | None = None,
        target_precision: float | None = None,
    ) -> "ExportSettings":
        """The same with what is given in its place; the last two stand for each other."""
        changed: dict[str, Any] = {}
        if formats is not None:
            changed["formats"] = tuple(formats)
        if top_k is not None:
            changed["top_k"] = top_k
        if threshold is not None or target_precision is not None:
            changed |= {"threshold": threshold, "target_precision": target_precision}
        return replace(self, **changed)


def export_settings(config: DictConfig) -> ExportSettings:
    """Those of a config; of one from before there were any, the defaults."""
    node = OmegaConf.select(config, "export")
    if node is None:
        return ExportSettings()
    return ExportSettings(tuple(node.formats), node.top_k, node.threshold, node.target_precision)


def check_export(config: DictConfig, settings: ExportSettings) -> None:
    """Refuse settings that the config could not have.

    Raises:
        ConfigError: names the key, what was given and what is allowed.
    """
    asked = config.copy()
    try:
        for name, value in vars(settings).items():
            asked.export[name] = value
    except OmegaConfBaseException as error:  # no kind of value that a config can hold
        raise ConfigError(sentence(error)) from error
    check_config(asked)
