"""A finished run in memory, and functions that read it from a folder and write it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from omegaconf import DictConfig
from torch import Tensor

from emea.answer.curation import Curated, read_decisions
from emea.answer.decision import Decision
from emea.config.instantiate import check_trusted
from emea.config.run_config import RunConfig
from emea.config.unknown_settings import without_unknown
from emea.data.arrays import IntArray
from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.errors import DataError, writing
from emea.matching.beliefs import Beliefs
from emea.record.checked_files import (
    damaged,
    read_checked_arrays,
    read_file,
    reading,
    write_atomic,
)
from emea.record.pair_file import pair_of_run, write_pair
from emea.record.run_folder import (
    BELIEFS_FILE,
    CONFIG_FILE,
    LOG_FILE,
    PAIR_FILE,
    RANKS_FILE,
    check_files,
    read_config,
    read_metrics,
)
from emea.record.run_record import (
    LOCK_FILE,
    RUN_FILE,
    RunHeader,
    check_finished,
    is_run_folder,
    read_header,
    start_record,
)
from emea.run.building import draw_split
from emea.run.outcome import Numbers
from emea.run.resuming import RESULT_FILES, locked_folder, make_room

GROUPS = (
    *("data", "split", "method", "em", "rule", "protocol", "decoding", "literals"),
    *("model", "training", "trainer"),
)
"""Groups of the configuration that every run has."""

ROUNDING = 1e-3
"""The amount by which a stored probability may exceed 1."""

RECORDS = (CONFIG_FILE, *RESULT_FILES, RUN_FILE)
"""The files of a finished run, except for its graphs; run.json comes last."""


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """Holds the results of a run and its graphs in memory.

    Args:
        folder: The folder of the run.
        header: Name, parameters and tags of the run.
        config: Its configuration.
        metrics: The content of its ``metrics.json``.
        pair: The graphs and all their links.
        split: The split of the links.
        neural: Candidates and probabilities of the neural model; ``None`` if the run had none.
        joint: Candidates and probabilities of the joint distribution, or a baseline's matching;
            ``None`` if the run had no EM.
        labels: ``[num_labels, 2]`` links with probability 1.
        votes: ``[num_members, num_source]`` best target of each encoder of an ensemble.
        decision: The answer, if the run belongs to this process; ``None`` if it is in the folder.
        decisions: The decisions of a person that the run follows.
        run_config: The configuration as typed settings; ``None`` if they were not read yet.
    """

    folder: Path
    header: RunHeader
    config: DictConfig
    metrics: Numbers
    pair: GraphPair
    split: Split
    neural: Beliefs | None
    joint: Beliefs | None
    labels: Tensor
    decision: Decision | None = None
    votes: Tensor | None = None
    decisions: Sequence[Curated] = ()
    run_config: RunConfig | None = None

    @cached_property
    def settings(self) -> RunConfig:
        """The configuration as typed settings."""
        return self.run_config or RunConfig.of(self.config)

    @property
    def beliefs(self) -> Beliefs:
        """The beliefs that are the result of the run."""
        is_joint = self.joint is not None and (
            self.settings.answers_jointly or self.neural is None
        )
        found = self.joint if is_joint else self.neural
        assert found is not None, "a finished run has one of them"
        return found


def load_run(folder: Path | str, trust: Sequence[str] = ()) -> FinishedRun:
    """Read a finished run from its folder; nothing is trained and nothing is written.

    Args:
        folder: The folder of the run.
        trust: Modules outside this package that its configuration may name. The list in the
            configuration itself is ignored, because the folder may come from an untrusted source.

    Raises:
        UserError: If the folder contains no finished run, its data changed, or a file is damaged.
    """
    folder = Path(folder)
    check_finished(folder)
    config = read_config(folder)
    config.trust = list(trust)
    _check_groups(folder, config)
    check_trusted(config)  # no other checks: old settings may be invalid now
    config, settings = _known_settings(folder, config)
    pair = pair_of_run(folder, config)
    header = read_header(folder)
    if pair.checksum() != header.tags.get("data_checksum"):
        raise DataError(
            f"The data of {pair.name} changed since the run in {folder}. Restore the files or run "
            "it again."
        )
    metrics = read_metrics(folder, is_complete=True)
    split = draw_split(settings, pair)
    neural, joint, labels, votes = read_beliefs(folder / BELIEFS_FILE, pair)
    if neural is None and settings.uses("em"):
        raise DataError(
            f"{folder / BELIEFS_FILE} is damaged: it lacks the neural model's beliefs"
        )
    check_parts(folder, split, labels.numpy())
    decisions = read_decisions(folder)
    check_files(folder, metrics)
    return FinishedRun(
        folder,
        header,
        config,
        metrics,
        pair,
        split,
        neural,
        joint,
        labels,
        votes=votes,
        decisions=decisions,
        run_config=settings,
    )


def write_run(folder: Path, run: FinishedRun, records: Mapping[str, bytes]) -> None:
    """Write a run into another folder, together with its graphs.

    Args:
        folder: A new or empty folder, or the folder of a run, which is replaced.
        run: The run.
        records: Its other files by name, in the order in which they are written.

    Raises:
        DataError: If the folder has other content, or cannot be written to.
    """
    with writing(folder), locked_folder(folder):
        own = {LOCK_FILE, LOG_FILE}
        others = [path for path in folder.iterdir() if path.name not in own]
        if not is_run_folder(folder) and others:
            raise DataError(
                f"{folder} contains other files than a run. Choose another folder."
            )
        if not is_run_folder(folder) or read_header(folder).run_id != run.header.run_id:
            make_room(folder)
        start_record(folder, run.header)  # unfinished until everything is written
        write_pair(folder / PAIR_FILE, run.pair)
        for name, content in records.items():
            write_atomic(folder / name, content)


def read_records(folder: Path) -> dict[str, bytes]:
    """Return the files of a finished run, except for its graphs and weights."""
    paths = [folder / name for name in RECORDS]
    return {path.name: read_file(path) for path in paths if path.exists()}


def _check_groups(folder: Path, config: DictConfig) -> None:
    """Raise an error if a config lacks groups that every run has."""
    for group in GROUPS:
        if not isinstance(config.get(group), DictConfig):
            raise DataError(
                f"{folder / CONFIG_FILE} has no {group}. The file is damaged, or its version of "
                "emea is too old."
            )


def _known_settings(folder: Path, config: DictConfig) -> tuple[DictConfig, RunConfig]:
    """Return the settings of a run that this version has, also as typed settings."""
    place = folder / CONFIG_FILE
    try:
        known = without_unknown(config, place)
        return known, RunConfig.of(known)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{place} is damaged: {type(error).__name__}: {error}"
        ) from error


Stored = tuple[Beliefs | None, Beliefs | None, Tensor, Tensor | None]
"""The beliefs of a file: neural, joint, labels and votes, as in `FinishedRun`."""


def read_beliefs(path: Path, pair: GraphPair) -> Stored:
    """Read the beliefs of a run on a pair of graphs.

    Raises:
        DataError: If the file cannot be read, or belongs to other graphs.
    """
    arrays = read_checked_arrays(path)
    with reading(path):
        neural, joint = (_beliefs(arrays, name, pair) for name in ("neural", "joint"))
        if neural is None and joint is None:
            raise ValueError("it contains no beliefs")
        labels = arrays["labels"]
        sizes = np.array([pair.source.num_entities, pair.target.num_entities])
        if labels.shape[1:] != (2,) or not _are_ids(labels, sizes):
            raise ValueError(f"its labels are not links of {pair.name}")
        votes = arrays.get("votes")
        if votes is not None and not (
            votes.shape[1:] == (pair.source.num_entities,)
            and _are_ids(votes + 1, sizes[1] + 1)
        ):
            raise ValueError(f"its votes are not about {pair.name}")
        found = None if votes is None else torch.from_numpy(votes)
        return neural, joint, torch.from_numpy(labels), found


def _beliefs(
    arrays: Mapping[str, np.ndarray], name: str, pair: GraphPair
) -> Beliefs | None:
    """Return beliefs; every source entity needs valid candidates and probabilities."""
    probs = arrays.get(f"{name}_probs")
    targets = arrays.get(f"{name}_targets", arrays.get("targets"))
    if probs is None or targets is None:
        return None
    is_valid = (
        targets.shape == probs.shape
        and targets.shape[:1] == (pair.source.num_entities,)
        and targets.shape[1:] != (0,)
        and _are_ids(targets, np.array(pair.target.num_entities))
        and probs.dtype.kind == "f"
        and bool(((probs >= 0) & (probs <= 1 + ROUNDING)).all())
    )
    if not is_valid:
        raise ValueError(f"its beliefs are not about {pair.name}")
    if not _are_distinct(targets, probs):
        raise ValueError("an entity has the same candidate twice")
    return Beliefs(torch.from_numpy(targets), torch.from_numpy(probs))


def _are_distinct(targets: np.ndarray, probs: np.ndarray) -> bool:
    """Return whether each row has different candidates; empty slots have probability 0."""
    slots = np.arange(targets.shape[1])
    ordered = np.sort(np.where(probs > 0, targets, -1 - slots), axis=1)
    return not bool((ordered[:, 1:] == ordered[:, :-1]).any())


def _are_ids(ids: np.ndarray, sizes: IntArray | int) -> bool:
    """Return whether a matrix contains ids below the size, or below the size of their column."""
    is_matrix = ids.ndim == 2 and ids.dtype == np.int64
    return is_matrix and bool(((ids >= 0) & (ids < sizes)).all())


def check_parts(folder: Path, split: Split, labels: IntArray) -> None:
    """Raise an error if the train or test links changed since the run.

    The checksum of the data covers all links, but not how they are split.

    Args:
        folder: The run's folder, which has the test links in its file of ranks.
        split: The current split.
        labels: Links with probability 1 in the run.

    Raises:
        DataError: If the links changed, or the file of ranks cannot be read.
    """
    path = folder / RANKS_FILE
    test = _as_set(split.test)
    same = True
    if path.exists():
        ranked = read_checked_arrays(path).get("links")
        if ranked is None or ranked.dtype != np.int64 or ranked.shape[1:] != (2,):
            raise damaged(path, "it contains no links")
        same = _as_set(ranked) == test
    # with protocol=released, AvoidConf also gives some test links probability 1
    if not same or _as_set(labels) - test != _as_set(split.supervision.train):
        raise DataError(
            f"Train or test links changed since the run in {folder}. Restore the link files or "
            "run it again."
        )


def _as_set(links: IntArray) -> set[tuple[int, ...]]:
    return set(map(tuple, links.tolist()))
