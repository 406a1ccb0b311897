"""A finished run, read back from its folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from torch import Tensor

from emea.answer.formats import ALIGNMENT_FILES
from emea.config.trusted_targets import check_trusted
from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.errors import DataError
from emea.matching.beliefs import Beliefs
from emea.record.atomic import write_atomic
from emea.record.belief_file import check_parts, read_beliefs
from emea.record.earlier_runs import LOCK_FILE
from emea.record.pair_file import pair_of_run, write_pair
from emea.record.run_folder import (
    BELIEFS_FILE,
    CONFIG_FILE,
    METRICS_FILE,
    PAIR_FILE,
    RANKS_FILE,
    read_config,
    read_metrics,
)
from emea.record.run_record import (
    RUN_FILE,
    RunHeader,
    RunRecord,
    check_finished,
    is_run_folder,
    read_header,
)
from emea.run.parts import draw_split
from emea.run.resuming import locked_folder, make_room

GROUPS = ("data", "split", "method", "em", "rule", "protocol", "decoding")
"""Of the configuration, without which a run cannot be read back."""

RECORDS = (CONFIG_FILE, METRICS_FILE, BELIEFS_FILE, RANKS_FILE, *ALIGNMENT_FILES, RUN_FILE)
"""The files by which a finished run is read back."""


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
    return read_run(folder, config, pair_of_run(folder, config))


def write_run(folder: Path, run: FinishedRun, records: Mapping[str, bytes]) -> None:
    """Write a run into another folder, together with its graphs; the weights are not copied.

    Args:
        folder: a new or empty folder, or that of a run, which is replaced.
        run: the run.
        records: what ``read_records`` found in its folder.

    Raises:
        DataError: the folder has other content, or cannot be written to.
    """
    try:
        with locked_folder(folder):
            others = [path for path in folder.iterdir() if path.name != LOCK_FILE]
            if not is_run_folder(folder) and others:
                raise DataError(f"{folder} is not empty and not a run's folder: choose another")
            if not is_run_folder(folder) or read_header(folder).run_id != run.header.run_id:
                make_room(folder)
            RunRecord(folder).start(run.header)  # unfinished, until everything is written
            write_pair(folder / PAIR_FILE, run.pair)
            for name in RECORDS:  # run.json, which says that it is finished, comes last
                if name in records:
                    write_atomic(folder / name, records[name])
    except OSError as error:
        raise DataError(f"{folder} cannot be written to: {error.strerror or error}") from error


def read_records(folder: Path) -> dict[str, bytes]:
    """The files that a finished run needs to be read back, but for its graphs."""
    paths = [folder / name for name in RECORDS]
    return {path.name: path.read_bytes() for path in paths if path.exists()}


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
