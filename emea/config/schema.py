"""The root schema: a key that is not here does not exist."""

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING


@dataclass
class RatioConfig:
    """Share of the links used for training."""

    value: float = MISSING


@dataclass
class ExportConfig:
    """What is answered, and in which files."""

    formats: Any = MISSING
    top_k: Any = MISSING
    threshold: Any = None
    target_precision: Any = None


@dataclass
class RootConfig:
    """Every top-level key of a run; the groups' own keys come from their YAML files."""

    data: Any = MISSING
    split: Any = MISSING
    ratio: RatioConfig = field(default_factory=RatioConfig)
    model: Any = MISSING
    training: Any = MISSING
    rule: Any = MISSING
    em: Any = MISSING
    method: Any = MISSING
    protocol: Any = MISSING
    similarity: Any = MISSING
    decoding: Any = MISSING
    search: Any = MISSING
    trainer: Any = MISSING
    tracking: Any = MISSING
    export: ExportConfig = field(default_factory=ExportConfig)
    seed: int = MISSING
    split_seed: int = MISSING
    study: str = MISSING
    initial_from: str | None = None
    observed_links: int | None = None
    skip_recorded: bool = False
    trust: list[str] = field(default_factory=list)


def register_schema() -> None:
    """Make the schema known to Hydra under the name ``config.yaml`` asks for."""
    ConfigStore.instance().store(name="schema", node=RootConfig)
