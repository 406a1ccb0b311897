"""What is to be answered, and in which files."""

from dataclasses import dataclass

from omegaconf import DictConfig, OmegaConf


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


def export_settings(config: DictConfig) -> ExportSettings:
    """Those of a config; of one from before there were any, the defaults."""
    node = OmegaConf.select(config, "export")
    if node is None:
        return ExportSettings()
    return ExportSettings(tuple(node.formats), node.top_k, node.threshold, node.target_precision)
