"""Small configs for tests of whole runs."""

import torch
from omegaconf import DictConfig

from emea.config.composition import composed
from emea.config.run_config import RunConfig
from emea.data.protocol import Strict
from emea.record.pair_file import load_pair
from emea.run.building import BuiltRun, build_run, draw_split

TINY = (
    "data.num_entities=150",
    "ratio=0.2",
    "split.num_validation=20",
    "model.initial_epochs=4",
    "model.epochs_per_iteration=2",
    "trainer=cpu",
    "trainer.block_size=8",
    "tracking=none",
)


NARROW = {"dim": 16, "output_dim": 16, "num_proxies": 8, "dims": [16, 16, 16]}
"""Widths of encoders where no other was chosen: most tests do not ask what they find."""


def tiny_config_of(*overrides: str) -> DictConfig:
    """A config that runs in seconds, with further overrides."""
    config = composed([*TINY, *overrides])
    encoder, chosen = config.model.encoder, " ".join(overrides)
    for key, width in NARROW.items():
        if key in encoder and f"model.encoder.{key}=" not in chosen:
            encoder[key] = width
    return config


def make_parts(config: DictConfig) -> BuiltRun:
    """The objects of a run that sees what the strict protocol shows."""
    pair = load_pair(config)
    visible = Strict()(draw_split(RunConfig.of(config), pair))
    return build_run(
        RunConfig.of(config),
        pair,
        visible,
        observer=lambda _: None,
        device=torch.device("cpu"),
    )
