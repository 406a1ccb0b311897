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
    "model.initial_epochs=12",
    "model.epochs_per_iteration=4",
    "trainer=cpu",
    "trainer.block_size=8",
    "tracking=none",
)


NARROW = {"dim": 16, "output_dim": 16, "num_proxies": 8, "dims": [16, 16, 16]}
"""Widths of encoders where no other was chosen: most tests do not ask what they find."""


@pytest.fixture
def tiny_config() -> Callable[..., DictConfig]:
    """A config that runs in seconds, with further overrides."""

    def make(*overrides: str) -> DictConfig:
        register_schema()
        config = composed([*TINY, *overrides])
        encoder, chosen = config.model.encoder, " ".join(overrides)
        for key, width in NARROW.items():
            if key in encoder and f"model.encoder.{key}=" not in chosen:
                encoder[key] = width
        return config

    return make
