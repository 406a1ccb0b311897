"""The record of a run: header, metric series and closing."""

import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from shlex import quote
from typing import Any

from emea.errors import DataError, UserError
from emea.record.checked_files import (
    json_object,
    read_checked_json,
    write_atomic,
    write_checked_json,
)

logger = logging.getLogger(__name__)


LARGEST = 2**63
"""Integers from here on do not fit into a database column."""

LAST_TIME = 253_402_300_800_000
"""The year 10000 in milliseconds since the epoch; dates end before it."""


def field_problem(content: Mapping[str, Any], names: Iterable[str]) -> str | None:
    """Describe the first field that is missing or invalid; ``None`` if all are valid."""
    for name in names:
        if name not in content:
            return f"it lacks {name!r}"
        if not CHECKS[name](content[name]):
            return f"its {name!r} cannot be used"
    return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_whole_number(value: Any) -> bool:
    # bool is a subclass of int, but JSON's true is not a number
    return isinstance(value, int) and not isinstance(value, bool) and -LARGEST <= value < LARGEST


def _is_time(value: Any) -> bool:
    return _is_whole_number(value) and 0 <= value < LAST_TIME


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_whole_number(value)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _mapping_of(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


CHECKS: dict[str, Callable[[Any], bool]] = {
    "run_id": _is_text,
    "name": _is_text,
    "experiment": _is_text,
    "params": _mapping_of(_is_plain),
    "tags": _mapping_of(_is_text),
    "start_time": _is_time,
    "status": _is_text,
    "end_time": _is_time,
    "reason": _is_text,
    "step": _is_whole_number,
    "time": _is_time,
    "metrics": _mapping_of(_is_number),
}


LOCK_FILE = ".running"
"""The lock that a process holds while it works in a run's folder."""

RUN_FILE = "run.json"
SERIES_FILE = "series.jsonl"
STATUSES = ("FINISHED", "FAILED", "KILLED")
COMMAND_TAG, USER_TAG = "command", "user"
FINGERPRINT_TAG, SWEEP_TAG = "fingerprint", "sweep"

ParamValue = str | int | float | bool | None


@dataclass(frozen=True)
class RunHeader:
    """Holds everything that is known about a run before it starts.

    Args:
        run_id: A uuid4 hex that identifies the run in every store.
        name: A readable name, e.g. `emea-rrea-dbp15k_zh-1%-strict-s0`.
        experiment: The group of runs that the run belongs to.
        params: The flattened resolved configuration, complete; MLflow shows a part of it.
        tags: Commit, data checksum, protocol and the like.
        start_time: Milliseconds since the epoch.
    """

    run_id: str
    name: str
    experiment: str
    params: dict[str, ParamValue] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    start_time: int = field(default_factory=lambda: now_ms())


@dataclass(frozen=True)
class RunClosing:
    """Holds the end of a run: one of `STATUSES`, the time (epoch ms) and the reason."""

    status: str
    end_time: int
    reason: str = ""


@dataclass(frozen=True)
class MetricPoint:
    """Holds metrics that were measured together, which are one line of the series."""

    step: int
    time: int
    metrics: dict[str, float]


def flat_params(node: Any, prefix: str = "") -> dict[str, ParamValue]:
    """Return a nested configuration with dotted keys; lists become text."""
    if not isinstance(node, dict):
        value = node if isinstance(node, str | int | float | bool) or node is None else str(node)
        return {prefix[:-1]: value}
    flat: dict[str, ParamValue] = {}
    for key, value in node.items():
        flat |= flat_params(value, f"{prefix}{key}.")
    return flat


def now_ms() -> int:
    """Return the milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


class RunRecord:
    """Writes the record of a run into its folder.

    Args:
        folder: The run's folder, created if it is missing.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def start(self, header: RunHeader) -> None:
        """Write the header. Points of another run in this folder are removed."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._clean_series(header.run_id)
        write_checked_json(self.folder / RUN_FILE, asdict(header) | _closing_fields(None))

    def log(self, metrics: Mapping[str, float], step: int) -> MetricPoint:
        """Append one line of metrics and return it."""
        values = {name: float(value) for name, value in metrics.items()}
        point = MetricPoint(int(step), now_ms(), values)
        # Opened and closed for each line, so that a kill after this call cannot lose it.
        with open(self.folder / SERIES_FILE, "a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(point)) + "\n")
        return point

    def close(self, status: str, reason: str = "", end_time: int | None = None) -> RunClosing:
        """Write how the run ended into the header; an `end_time` of ``None`` means now."""
        if status not in STATUSES:
            raise ValueError(f"status must be one of {', '.join(STATUSES)}, not {status!r}")
        closing = RunClosing(status, now_ms() if end_time is None else end_time, reason)
        header = read_header(self.folder)
        write_checked_json(self.folder / RUN_FILE, asdict(header) | _closing_fields(closing))
        return closing

    def _clean_series(self, run_id: str) -> None:
        series = self.folder / SERIES_FILE
        if series.is_symlink():
            series.unlink()  # a run does not write through links
        if not series.exists():
            return
        same_run = is_run_folder(self.folder) and read_header(self.folder).run_id == run_id
        # Rewritten even for the same run, because its last line may be incomplete.
        kept = read_series(self.folder) if same_run else []
        _write_series(self.folder, kept)


def keep_points(folder: Path | str, num_points: int) -> None:
    """Remove all but the first points of the series; a resumed run records the others again."""
    _write_series(folder, read_series(folder)[:num_points])


def _write_series(folder: Path | str, points: Iterable[MetricPoint]) -> None:
    lines = "".join(json.dumps(asdict(point)) + "\n" for point in points)
    write_atomic(Path(folder) / SERIES_FILE, lines)


def is_run_folder(folder: Path | str) -> bool:
    """Return whether the folder contains the record of a run."""
    return (Path(folder) / RUN_FILE).is_file()


def read_header(folder: Path | str) -> RunHeader:
    """Return the header of the run in a folder.

    Raises:
        UserError: If the folder has no valid `run.json`.
    """
    return parsed_header(read_run_file(Path(folder)), Path(folder) / RUN_FILE)


def parsed_header(content: Mapping[str, Any], path: Path) -> RunHeader:
    """Return the header in the content of a `run.json`; errors name the path."""
    return RunHeader(**_fields_of(RunHeader, path, content))


def read_closing(folder: Path | str) -> RunClosing | None:
    """Return the end of the run in a folder; ``None`` if it is running or was killed.

    Raises:
        UserError: If the folder has no valid `run.json`.
    """
    return parsed_closing(read_run_file(Path(folder)), Path(folder) / RUN_FILE)


def parsed_closing(content: Mapping[str, Any], path: Path) -> RunClosing | None:
    """Return the closing in the content of a `run.json`; errors name the path."""
    if content.get("status") not in STATUSES:
        return None
    return RunClosing(**_fields_of(RunClosing, path, {"reason": "", **content}))


def is_finished(folder: Path | str) -> bool:
    """Return whether the run finished.

    Raises:
        UserError: If the folder has no valid `run.json`.
    """
    closing = read_closing(folder)
    return closing is not None and closing.status == "FINISHED"


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock."""
    from filelock import FileLock, Timeout  # not needed by commands that only read records

    if not path.exists():
        return False
    try:
        with FileLock(path, timeout=0):
            return False
    except Timeout:
        return True


def check_finished(folder: Path | str) -> None:
    """Raise an error if the run in a folder is not finished.

    Raises:
        DataError: If the run is still running, failed or was interrupted.
        UserError: If the folder does not contain a run.
    """
    if is_finished(folder):
        return
    closing = read_closing(folder)
    state = "failed" if closing and closing.status == "FAILED" else "was interrupted"
    if closing is None and is_locked(Path(folder) / LOCK_FILE):
        raise DataError(f"{folder} is not a finished run: it is still running. Wait until it ends.")
    raise DataError(
        f"{folder} is not a finished run: it {state}. "
        f"Continue it with: emea run resume={quote(str(folder))}"
    )


def read_series(folder: Path | str) -> list[MetricPoint]:
    """Read every point. An incomplete last line of a killed run is dropped with a warning.

    Raises:
        UserError: If the file or a line other than the last cannot be read.
    """
    path = Path(folder) / SERIES_FILE
    if not path.exists():
        return []
    try:
        lines = path.read_bytes().rstrip(b"\n").split(b"\n")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
    points: list[MetricPoint] = []
    for number, line in enumerate(lines, start=1):
        point = _parse_point(line)
        if point is not None:
            points.append(point)
        elif number == len(lines):
            if line:
                logger.warning("%s: dropped the incomplete last line %d.", path, number)
        else:
            raise UserError(f"{path}, line {number} is damaged. Remove that line.")
    return points


def _closing_fields(closing: RunClosing | None) -> dict[str, Any]:
    if closing is None:
        return {"status": "RUNNING", "end_time": None, "reason": ""}
    return asdict(closing)


def read_run_file(folder: Path) -> dict[str, Any]:
    """Return the content of a run's header file, unchecked.

    Raises:
        UserError: If the file is missing or damaged.
    """
    if not os.access(folder / RUN_FILE, os.R_OK) or not is_run_folder(folder):
        raise UserError(f"{folder} is not a run's folder: it has no readable {RUN_FILE}.")
    return read_checked_json(folder / RUN_FILE)


def _fields_of(
    kind: type[RunHeader | RunClosing], path: Path, content: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of a record of this type; unknown fields of later versions are ignored."""
    names = [item.name for item in fields(kind)]
    problem = field_problem(content, names)
    if problem is not None:
        raise UserError(f"{path} is not a valid run record: {problem}.")
    return {name: content[name] for name in names}


def _parse_point(line: bytes) -> MetricPoint | None:
    try:
        content = json_object(line)
    except ValueError:
        return None
    names = [item.name for item in fields(MetricPoint)]
    if field_problem(content, names) is not None:
        return None
    return MetricPoint(**{name: content[name] for name in names})
