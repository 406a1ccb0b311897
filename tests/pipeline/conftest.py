"""Small configs for tests of whole runs."""

from collections.abc import Callable

import pytest
from omegaconf import DictConfig

from emea.pipeline.overrides import composed
from emea.pipeline.schema import register_schema

TINY = (
    "data.num_entities=150",
    "ratio=0.2",
    "split.num_validation=20",
    "model.initial_epochs=30",
    "model.epochs_per_iteration=10",
    "trainer=cpu",
    "trainer.block_size=8",
    "tracking=none",
)


@pytest.fixture
def tiny_config() -> Callable[..., DictConfig]:
    """A config that runs in seconds, with further overrides."""

    def make(*overrides: str) -> DictConfig:
        register_schema()
        return composed([*TINY, *overrides])

    return make
