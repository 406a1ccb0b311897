"""A finished run, read back from its folder."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from omegaconf import DictConfig, OmegaConf

from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.errors import DataError
from emea.matching.beliefs import Beliefs
from emea.pipeline.parts import draw_split, load_pair
from emea.pipeline.run_files import BELIEFS_FILE, CONFIG_FILE, METRICS_FILE
from emea.pipeline.validation import check_config
from emea.tracking.run_record import read_closing, read_header


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """What a run left, and the graphs it is about.

    Args:
        folder: where it lies.
        config: its resolved configuration.
        metrics: its numbers.
        pair: the graphs, read again from where they were.
        split: the split of their links that it was made with.
        neural: candidates and probabilities by the neural model; ``None``: it had none.
        joint: the same by the joint distribution, or a baseline's matching; ``None``: no EM.
    """

    folder: Path
    config: DictConfig
    metrics: dict[str, Any]
    pair: GraphPair
    split: Split
    neural: Beliefs | None
    joint: Beliefs | None

    @property
    def beliefs(self) -> Beliefs:
        """Those that the run stands for."""
        fused = OmegaConf.select(self.config, "em.two_way.fused_answer", default=False)
        stands_for_joint = fused or self.config.method.reasoner is not None
        found = self.joint if stands_for_joint or self.neural is None else self.neural
        assert found is not None, "a finished run has one of them"
        return found


def load_run(folder: Path | str, trust: Sequence[str] = ()) -> FinishedRun:
    """Read a run back; nothing is trained and nothing is written.

    Args:
        folder: the run's.
        trust: modules beside ours that its configuration may name; what it says itself of that
            does not count, since the folder may come from a stranger.

    Raises:
        DataError: the folder holds no finished run, or its data changed since.
    """
    folder = Path(folder)
    header, closing = read_header(folder), read_closing(folder)
    if closing is None or closing.status != "FINISHED":
        state = closing.status.lower() if closing else "still running or was killed"
        raise DataError(f"{folder} is no finished run: it {state}")
    config = OmegaConf.load(folder / CONFIG_FILE)
    assert isinstance(config, DictConfig)
    config.trust = list(trust)
    check_config(config)
    pair = load_pair(config)
    if pair.checksum() != header.tags["data_checksum"]:
        raise DataError(f"{folder} was made with other data than {pair.name} holds now")
    metrics = json.loads((folder / METRICS_FILE).read_text(encoding="utf-8"))
    beliefs = _read_beliefs(folder / BELIEFS_FILE)
    return FinishedRun(folder, config, metrics, pair, draw_split(config, pair), **beliefs)


def _read_beliefs(path: Path) -> dict[str, Beliefs | None]:
    """Both kinds, as ``run_files.write_beliefs`` wrote them."""
    try:
        with np.load(path) as file:
            arrays = {name: torch.from_numpy(file[name]) for name in file.files}
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    found: dict[str, Beliefs | None] = {}
    for name in ("neural", "joint"):
        probs = arrays.get(f"{name}_probs")
        targets = arrays.get(f"{name}_targets", arrays.get("targets"))
        found[name] = None if probs is None or targets is None else Beliefs(targets, probs)
    return found
