"""Settings of every run that belong to no group, and those of its answer."""

from dataclasses import dataclass

from emea.config.settings.setting import SEED, SHARE, SHARE_ABOVE_ZERO, setting, up_to

EXPORT_FORMATS = ("tsv", "nt", "sssom", "jsonl")
"""File formats of an alignment."""


@dataclass(frozen=True)
class ExportSettings:
    """The answer of a run and the files that hold it (docs/exports.md)."""

    formats: tuple[str, ...] = setting(
        ("tsv",), "file formats of the alignment; tsv is always written", EXPORT_FORMATS
    )
    top_k: int = setting(
        1, "candidates of each source entity in alignment.jsonl", up_to(100_000), required=True
    )
    threshold: float | None = setting(
        None, "lowest probability of an answer; other source entities stay unmatched", SHARE
    )
    target_precision: float | None = setting(
        None, "chooses the threshold that reaches this precision on the validation links", SHARE
    )
    least_inclusion: float = setting(
        0.5,
        "lowest probability of an inclusion of relations or classes that is stated",
        SHARE_ABOVE_ZERO,
        source="ours",
    )


@dataclass(frozen=True)
class RunSettings:
    """The settings at the top level of the configuration."""

    seed: int = setting(0, "seed of weights, negatives and dropout", SEED)
    split_seed: int = setting(0, "seed of the split into train, validation and test links", SEED)
    initial_from: str | None = setting(
        None, "checkpoint of another run; its weights replace the first training"
    )
    observed_links: int | None = setting(
        None,
        "test links that are ranked between iterations, null for all; the first and the last "
        "ranking always use all",
        up_to(10**9),
    )
    skip_recorded: bool = setting(
        False, "skip a run that is already recorded with the same settings, data and code"
    )
    trust: tuple[str, ...] = setting(
        (), "your own modules that a configuration may name", example="[my_module]"
    )
    study: str = setting("emea", "MLflow experiment of the run")
    export: ExportSettings = ExportSettings()
