"""A finished run, read back from its folder."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.errors import DataError
from emea.matching.beliefs import Beliefs
from emea.pipeline.belief_file import read_beliefs
from emea.pipeline.building import load_pair
from emea.pipeline.parts import draw_split
from emea.pipeline.run_files import (
    BELIEFS_FILE,
    CONFIG_FILE,
    METRICS_FILE,
    read_config,
    read_metrics,
)
from emea.pipeline.stored_parts import check_parts
from emea.pipeline.trusted_targets import check_trusted
from emea.tracking.run_record import RunHeader, check_finished, read_header

GROUPS = ("data", "split", "method", "em", "rule", "protocol", "decoding")
"""Of the configuration, without which a run cannot be read back."""


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """What a run left, and the graphs it is about.

    Args:
        folder: where it lies.
        header: who it is.
        config: its resolved configuration.
        metrics: its numbers.
        pair: the graphs, read again from where they were.
        split: the split of their links that it was made with.
        neural: candidates and probabilities by the neural model; ``None``: it had none.
        joint: the same by the joint distribution, or a baseline's matching; ``None``: no EM.
        labels: ``[num_labels, 2]`` links that it was certain of.
    """

    folder: Path
    header: RunHeader
    config: DictConfig
    metrics: dict[str, Any]
    pair: GraphPair
    split: Split
    neural: Beliefs | None
    joint: Beliefs | None
    labels: Tensor

    @property
    def beliefs(self) -> Beliefs:
        """Those that the run stands for."""
        fused = OmegaConf.select(self.config, "em.two_way.fused_answer", default=False)
        stands_for_joint = self.joint is not None and (fused or self.neural is None)
        found = self.joint if stands_for_joint else self.neural
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
    check_finished(folder)
    config = read_config(folder)
    config.trust = list(trust)
    _check_groups(folder, config)
    check_trusted(config)  # nothing else: an older run's settings need not be today's
    if "_target_" not in config.data:
        raise DataError(f"{folder} aligned graphs that a program gave it: ask that program")
    return read_run(folder, config, load_pair(config))


def read_run(folder: Path, config: DictConfig, pair: GraphPair) -> FinishedRun:
    """Read a finished run of this config and pair back.

    Raises:
        DataError: the pair or its parts are others, or a file cannot be read.
    """
    header = read_header(folder)
    if pair.checksum() != header.tags.get("data_checksum"):
        raise DataError(f"{folder} was made with other data than {pair.name} holds now")
    metrics = read_metrics(folder)
    _check_metrics(folder, metrics)
    split = draw_split(config, pair)
    stored = read_beliefs(folder / BELIEFS_FILE, pair)
    if stored.neural is None and config.method.reasoner is None:
        raise DataError(f"{folder / BELIEFS_FILE} is damaged: it lacks those of the neural model")
    labels = stored.labels
    check_parts(folder, split, None if labels is None else labels.numpy())
    if labels is None:  # those of all but protocol=released with AvoidConf
        labels = torch.from_numpy(split.supervision.train.copy())
    return FinishedRun(
        folder, header, config, metrics, pair, split, stored.neural, stored.joint, labels
    )


def _check_groups(folder: Path, config: DictConfig) -> None:
    """Refuse a config that lacks what every run has had."""
    for group in GROUPS:
        if not isinstance(config.get(group), DictConfig):
            raise DataError(
                f"{folder / CONFIG_FILE} has no {group}: it is damaged, or of a version before ours"
            )


def _check_metrics(folder: Path, metrics: dict[str, Any]) -> None:
    """Refuse numbers that do not tell what every run tells."""
    history = metrics.get("history")
    is_told = isinstance(history, list) and history and isinstance(history[-1], dict)
    if not is_told or not isinstance(metrics.get("protocol"), str):
        raise DataError(f"{folder / METRICS_FILE} is damaged: it lacks the history or the protocol")
