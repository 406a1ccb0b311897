"""Recorded runs: what was measured, by which code, on which machine."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from emea.data.arrays import FloatArray
from emea.errors import DataError
from emea.record.provenance import is_of_committed_code
from emea.record.run_folder import RANKS_FILE, read_ranks
from emea.record.study import find_studies, read_study
from emea.record.study_files import RUNS_FILE
from emea.reporting.markdown import machine_of, short_commit

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RecordedRun:
    """One run's metrics and header.

    Args:
        folder: its folder; a run of a study has none, and is named as if it lay in the study's.
        metrics: what its ``metrics.json`` holds.
        header: what its ``run.json`` holds.
        is_own: whether it was made for the study that is being written.
        line: of a study's table; 0: it is not of a study.
        read_ranks: ranks of its test links at a stage, where they were kept.
    """

    folder: Path
    metrics: dict[str, Any]
    header: dict[str, Any]
    is_own: bool = False
    line: int = 0
    read_ranks: Callable[[str], FloatArray | None] = field(
        default=lambda _: None, compare=False, repr=False
    )

    @property
    def run_id(self) -> str:
        """The run's id wherever its records go; empty where it was never given one."""
        return str(self.header.get("run_id", ""))

    @property
    def started(self) -> int:
        """When it began, in milliseconds since the epoch."""
        return int(self.header.get("start_time", 0))

    @property
    def precedence(self) -> tuple[bool, int]:
        """Of several runs of a cell and split the largest counts: a study's own, then the latest.

        A study's own runs share their first trainings and their code, where others may not.
        """
        return self.is_own, self.started

    @property
    def study(self) -> str:
        """What it was made for."""
        if self.line:
            return self.folder.parent.name
        return str(self.header["params"].get("study", ""))

    @property
    def reference(self) -> str:
        """Its study and its name, such as ``table1/zh-0.01-s0``."""
        return "/".join(self.folder.parts[-2:])

    def value(self, metric: str, pool: str = "test", stage: str = "final") -> float | None:
        """A metric of a ranking, among test targets or all targets.

        ``None`` where the method has none: reasoning names one counterpart and ranks no others.
        """
        ranking = self.metrics[stage]
        number: float | None = (ranking if pool == "test" else ranking["all_targets"])[metric]
        return number

    def ranks(self, stage: str = "final") -> FloatArray | None:
        """Rank of each test link's target among test targets; ``None`` where it was not kept."""
        if self.metrics["method"] == "neural":
            stage = "final"  # before and after are one
        return self.read_ranks(stage)


def load_records(folder: Path) -> list[RecordedRun]:
    """Every run of a study, by name."""
    return [
        RecordedRun(folder / run.name, run.metrics, run.header, False, run.line, run.ranks)
        for run in read_study(folder)
    ]


def ranks_in(folder: Path, stage: str) -> FloatArray | None:
    """The same from a run's own folder."""
    if not (folder / RANKS_FILE).exists():
        return None
    found = read_ranks(folder)[0].get(f"{stage}_in_pool")
    return None if found is None else found.astype(np.float64)


def load_committed(folder: Path) -> list[RecordedRun]:
    """The runs that count: of code that lies in the history as it was run, and evaluated."""
    runs, left_out = [], []
    for run in load_records(folder):
        if not is_of_committed_code(run.header["tags"]):
            left_out.append(run.folder.name)
        elif run.value("hit@1") is not None:
            runs.append(run)
    if left_out:
        logger.warning("%s: left out, not of committed code: %s", folder, ", ".join(left_out))
    if not runs:
        raise DataError(f"{folder} holds no recorded runs of committed code")
    return runs


def load_studies(experiments: Path) -> list[RecordedRun]:
    """The runs that count of all studies."""
    return [run for folder in find_studies([experiments]) for run in load_committed(folder)]


def seen_from(runs: Iterable[RecordedRun], study: str) -> list[RecordedRun]:
    """The runs, those that were made for a study marked as its own."""
    return [replace(run, is_own=run.study == study) for run in runs]


def provenance_line(runs: Sequence[RecordedRun]) -> str:
    """By which code and on which machine the runs were made, in one sentence."""
    if not runs:
        return "No run is recorded yet."
    runs = list({run.folder: run for run in runs}.values())  # one may stand in several rows
    tags = [run.header["tags"] for run in runs]

    def all_of(key: str) -> str:
        return ", ".join(sorted({tag.get(key, "unknown") for tag in tags}))

    commits = ", ".join(sorted({short_commit(tag) for tag in tags}))
    machines = ", ".join(sorted({machine_of(tag) for tag in tags}))
    splits = ", ".join(sorted({str(run.metrics["split_seed"]) for run in runs}))
    seeds, held_out = (
        ", ".join(sorted({str(run.header["params"].get(key, usual)) for run in runs}))
        for key, usual in (("seed", 0), ("split.num_validation", 100))
    )
    return (
        f"{len(runs)} recorded runs; commit {commits} (dirty: {all_of('dirty')}), "
        f"{machines}, torch {all_of('torch')}; mean ± standard deviation over split seeds "
        f"{splits} unless a cell says otherwise, seed {seeds}; {held_out} validation links beside "
        "the ratio."
    )


def run_links(runs: Iterable[RecordedRun], studies: str = "..") -> str:
    """The runs as numbered Markdown links to their lines, each once.

    Args:
        runs: recorded runs.
        studies: where the studies lie, seen from the text; the default is for a study's report.
    """
    places = dict.fromkeys(_place(run, studies) for run in runs)
    return " ".join(f"[{number}]({link})" for number, link in enumerate(places, start=1))


def _place(run: RecordedRun, studies: str) -> str:
    """Runs that are not of a study, such as a store's, are named by their whole address."""
    if not run.line:
        return (run.folder / "run.json").resolve().as_uri()
    return f"{studies}/{run.study}/{RUNS_FILE}#L{run.line}"
