"""Small fabricated runs."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from emea.results.recorded_run import RecordedRun
from experiments.archive.study import HEADER, add_runs
from experiments.archive.study_files import HISTORY, SERIES, PackedRun, encoded_ranks
from experiments.report.filling import fill
from experiments.report.records import PaperNumbers, load_records
from experiments.report.report import Table
from experiments.report.run_table import Runs, run_table
from experiments.report.study_spec import TableSpec

TAGS = {"commit": "c" * 40, "dirty": "false", "gpu": "some GPU", "torch": "2"}
TAGS |= {"data_checksum": "d" * 64}
PARAMS = {"em.iterations": 10, "em.num_candidates": 10, "training.epochs_per_turn": 100}
NEURAL = {"method": "neural", "em": "none", "rule": "none"}


def made(
    name: str = "a",
    study: str = "study",
    tags: dict[str, str] | None = None,
    params: dict[str, Any] | None = None,
    started: int = 0,
    **changes: Any,
) -> RecordedRun:
    """An EM run on zh at 1% that lifts Hit@1 from 0.1234 to 0.5, but for what is changed."""
    metrics: dict[str, Any] = {"data": "dbp15k_zh", "model": "rrea", "training": "sup"}
    metrics |= {"rule": "paris", "em": "paper", "protocol": "strict", "method": "emea"}
    metrics |= {
        "ratio": 0.01,
        "split_seed": 0,
        "initial": scores(0.1234),
        "final": scores(0.5),
    }
    metrics["history"] = history((0.1234, 0.2), (0.5, 0.4))
    header = {"run_id": f"id-{name}", "start_time": started}
    header |= {"tags": TAGS | (tags or {}), "params": PARAMS | (params or {})}
    return RecordedRun(name, study, metrics | changes, header)


def alone(hit: float, name: str = "alone", **changes: Any) -> RecordedRun:
    """A run of the neural model without EM."""
    return made(
        name, **(NEURAL | {"initial": scores(hit), "final": scores(hit)} | changes)
    )


def reasoned(method: str, hit: float, **changes: Any) -> RecordedRun:
    """A run of PARIS or PRASE, which name one counterpart and rank no others."""
    answers = {
        "mapping": {"all": {"precision": hit + 0.1, "recall": hit, "f1": hit + 0.05}}
    }
    kind = {
        "method": method,
        "em": "none",
        "rule": "none",
        "final": scores(hit, others=False),
    }
    return made(method, **(kind | answers | changes))


def write_run(
    study: Path,
    name: str,
    ranks: dict[str, Sequence[float]] | None = None,
    links: str | None = "e" * 64,
    **changes: Any,
) -> RecordedRun:
    """The same in a study's files, with ranks of the test links if they are given."""
    run = made(name, study.name, **changes)
    fields = dict.fromkeys(HEADER, "") | run.header
    metrics = {
        key: None if key == "history" else run.metrics[key] for key in run.metrics
    }
    entry = {"run": name, **fields, "config": {}, "metrics": metrics, "links": links}
    details = {
        f"{stage}_in_pool.npy": encoded_ranks(np.float64(ranks[stage]))
        for stage in ranks or {}
    }
    history = "".join(json.dumps(item) + "\n" for item in run.metrics["history"])
    add_runs(
        study,
        {name: PackedRun(entry, {HISTORY: history.encode(), SERIES: b"", **details})},
    )
    return next(found for found in load_records(study) if found.name == name)


def write_folder(folder: Path, name: str, **changes: Any) -> None:
    """The same as a run folder."""
    run = made(name, "", **changes)
    (folder / name).mkdir(parents=True)
    (folder / name / "metrics.json").write_text(json.dumps(run.metrics))
    header = {"name": name, "experiment": "tests", "start_time": 0, **run.header}
    (folder / name / "run.json").write_text(json.dumps(header))


def viewed(runs: Iterable[RecordedRun], study: str = "") -> Runs:
    """The runs as a study sees them."""
    return Runs(run_table(runs), study)


def filled(
    spec: TableSpec, runs: Iterable[RecordedRun], paper: PaperNumbers | None = None
) -> Table:
    """A table of these runs."""
    return fill(spec, viewed(runs), paper or {})


def texts(table: Table) -> dict[tuple[str, ...], dict[str, str]]:
    """The texts of a table by row labels and column title."""
    return {
        labels: dict(zip(table.titles, (entry.text for entry in cells), strict=True))
        for labels, cells in table.rows
    }


def scores(hit: float, others: bool = True) -> dict[str, Any]:
    """Metrics of one ranking; those of further ranks are missing where there are no others."""
    ranked = {
        "hit@1": hit,
        "mrr": hit if others else None,
        "mr": 10 * hit if others else None,
    }
    return {**ranked, "all_targets": {**ranked, "hit@1": hit / 2}}


def history(
    *hits: tuple[float, float], neural: Sequence[float] = ()
) -> list[dict[str, Any]]:
    """Hit@1 of the neural model and the joint distribution in each iteration, and its seconds."""
    trained = [*neural, *[1.0] * len(hits)]
    return [
        {
            "neural": scores(of_neural),
            "joint": scores(of_joint),
            "seconds": {"neural": seconds, "search": 0.5, "joint": 0.25},
        }
        for (of_neural, of_joint), seconds in zip(hits, trained, strict=False)
    ]
