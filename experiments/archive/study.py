"""The recorded runs of a study: reading, adding and checking them."""

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from emea.data.arrays import FloatArray
from emea.errors import DataError
from emea.record.run_record import flat_params
from experiments.archive.study_files import (
    DETAILS_FILE,
    FIX,
    HISTORY,
    RUNS_FILE,
    SERIES,
    PackedRun,
    decoded_ranks,
    detail_names,
    read_detail,
    read_lines,
    write_details,
    write_lines,
)

if TYPE_CHECKING:
    import pandas as pd

LOCK = ".runs.lock"
HEADER = (
    "run_id",
    "name",
    "experiment",
    "params",
    "tags",
    "start_time",
    "status",
    "end_time",
    "reason",
)
"""The fields of a run's ``run.json``, in order."""


@dataclass(frozen=True, eq=False)
class StudyRun:
    """Reads one run of a study.

    Args:
        study: The folder of the study.
        entry: The line of the run in ``runs.jsonl``.
        line: The number of that line, from 1.
    """

    study: Path
    entry: dict[str, Any]
    line: int

    @property
    def name(self) -> str:
        """The name of the run in its study."""
        return str(self.entry["run"])

    @property
    def config(self) -> dict[str, Any]:
        """The resolved configuration, nested."""
        return dict(self.entry["config"])

    @property
    def header(self) -> dict[str, Any]:
        """The content of the run's ``run.json``."""
        # a line has parameters only if they differ from the configuration
        found = {"params": flat_params(self.entry["config"]), **self.entry}
        return {key: found[key] for key in HEADER}

    @property
    def links_checksum(self) -> str | None:
        """The checksum of the test links of the ranks; ``None`` if it is unknown."""
        found: str | None = self.entry["links"]
        return found

    @property
    def scores(self) -> dict[str, Any]:
        """The content of the run's ``metrics.json`` without the history."""
        metrics = self.entry["metrics"].items()
        return {key: value for key, value in metrics if key != "history"}

    @property
    def metrics(self) -> dict[str, Any]:
        """The content of the run's ``metrics.json``, with the history."""
        metrics: dict[str, Any] = dict(self.entry["metrics"])
        if "history" in metrics:  # the line contains only its position
            metrics["history"] = self.history()
        return metrics

    def history(self) -> list[dict[str, Any]]:
        """Return the metrics of each iteration."""
        return [json.loads(line) for line in self.detail(HISTORY).splitlines()]

    def ranks(self, stage: str = "final") -> FloatArray | None:
        """Return the rank of each test link's target among the test targets.

        Args:
            stage: ``initial`` or ``final``.

        Returns:
            The ranks, infinity if a link has none; ``None`` if the run did not store such ranks.
        """
        name = f"{stage}_in_pool.npy"
        return (
            decoded_ranks(self.detail(name)) if name in self.entry["details"] else None
        )

    def detail(self, name: str) -> bytes:
        """Return the content of one detail, verified.

        Raises:
            DataError: If the detail is missing or damaged.
        """
        return read_detail(
            self.study, f"{self.name}/{name}", self.entry["details"].get(name)
        )


EXPERIMENTS = Path(__file__).resolve().parents[1]
"""The folder of all studies."""


def study_folder(study: str) -> Path:
    """Return the folder of a study that is given by its path, or by its name in ``experiments``."""
    given = Path(study)
    is_path = len(given.parts) > 1 or given.is_dir()
    return given if is_path else EXPERIMENTS / study


def is_study(folder: Path) -> bool:
    """Return whether a folder has recorded runs."""
    return (folder / RUNS_FILE).is_file()


def find_studies(roots: Iterable[Path]) -> list[Path]:
    """Return the studies at or directly below the roots, sorted."""
    found = {
        path for root in roots for path in (root, *root.glob("*")) if is_study(path)
    }
    return sorted(found)


def read_study(folder: Path | str) -> list[StudyRun]:
    """Return the recorded runs of a study, by name; every line is verified.

    Raises:
        DataError: If there are no runs, or a line is damaged.
    """
    folder = Path(folder)
    lines = enumerate(read_lines(folder), start=1)
    return [StudyRun(folder, entry, number) for number, entry in lines]


def find_run(folder: Path | str, name: str) -> StudyRun:
    """Return the run of a study with this name.

    Raises:
        DataError: If the study has no such run.
    """
    runs = {run.name: run for run in read_study(folder)}
    if name in runs:
        return runs[name]
    near = difflib.get_close_matches(name, runs, n=1)
    guess = f" Did you mean {near[0]}?" if near else ""
    raise DataError(f"{folder} has no run {name!r}.{guess}")


def study_frame(folder: Path | str) -> "pd.DataFrame":
    """Return the runs of a study as a table with one row per run and one column per value.

    Columns have dotted names, such as ``config.em.name`` or ``metrics.final.hit@1``. The history,
    the series and the ranks are not part of it.
    """
    import pandas as pd

    shown = ("run", *(key for key in HEADER if key != "params"), "links", "config")
    runs = read_study(folder)
    rows = [
        {key: run.entry[key] for key in shown} | {"metrics": run.scores} for run in runs
    ]
    return pd.json_normalize(rows)


def series_frame(folder: Path | str) -> "pd.DataFrame":
    """Return all logged metrics of a study with the columns run, step, time, metric and value."""
    import pandas as pd

    rows: list[tuple[str, int, int, str, float]] = []
    for run in read_study(folder):
        for point in map(json.loads, run.detail(SERIES).splitlines()):
            step, time = point["step"], point["time"]
            rows += [(run.name, step, time, *item) for item in point["metrics"].items()]
    return pd.DataFrame(rows, columns=["run", "step", "time", "metric", "value"])


def add_runs(
    folder: Path, packed: Mapping[str, PackedRun], replace: bool = False
) -> list[str]:
    """Add runs to a study.

    If the process is killed, the study stays readable: details are written before the lines that
    refer to them, and the lines of replaced runs are removed before their details.

    Args:
        folder: The folder of the study, created if it is missing.
        packed: The runs by their names.
        replace: Whether a run may replace another run of the same name.

    Returns:
        The names of the runs that were added or replaced.

    Raises:
        DataError: If the study is damaged, or has another run with one of the names.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / LOCK):
        kept = {run.name: run for run in read_study(folder)} if is_study(folder) else {}
        signed = {name: run.signed() for name, run in packed.items()}
        old = {
            name
            for name in signed.keys() & kept.keys()
            if kept[name].entry == signed[name]
        }
        replaced = (signed.keys() & kept.keys()) - old
        if replaced and not replace:
            raise DataError(
                f"{folder} already has another run named {min(replaced)}. "
                "Choose another name with --name, or replace that run with --replace."
            )
        added = sorted(signed.keys() - old)
        if not added:
            return []
        members: dict[str, bytes] = {}
        for name, run in kept.items():
            if name not in replaced:
                members |= {
                    f"{name}/{part}": run.detail(part) for part in run.entry["details"]
                }
        for name in added:
            members |= {
                f"{name}/{part}": text for part, text in packed[name].details.items()
            }
        entries = {
            name: run.entry for name, run in kept.items() if name not in replaced
        }
        if replaced:
            write_lines(folder, entries)
        write_details(folder, members)
        write_lines(folder, entries | {name: signed[name] for name in added})
        return added


def check_study(folder: Path) -> int:
    """Read every value of a study and verify its checksums.

    Returns:
        The number of runs.

    Raises:
        DataError: If a value is damaged or missing, or a detail belongs to no run.
    """
    runs = read_study(folder)
    known = set()
    for run in runs:
        for name in run.entry["details"]:
            run.detail(name)
            known.add(f"{run.name}/{name}")
    unknown = detail_names(folder) - known
    if unknown:
        path = folder / DETAILS_FILE
        raise DataError(f"{path} has {min(unknown)}, which belongs to no run. {FIX}")
    return len(runs)
