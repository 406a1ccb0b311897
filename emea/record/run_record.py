"""The record of a run: header, metric series and closing."""

import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin

from emea.errors import DataError, UserError
from emea.record.checked_files import (
    damaged,
    json_object,
    read_checked_json,
    read_file,
    reading,
    write_atomic,
    write_checked_json,
)

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

logger = logging.getLogger(__name__)


LOCK_FILE = ".running"
"""The lock that a process holds while it works in a run's folder."""

RUN_FILE = "run.json"
SERIES_FILE = "series.jsonl"
STATUSES = ("FINISHED", "FAILED", "KILLED")
UNFINISHED = {"status": "RUNNING", "end_time": None, "reason": ""}
COMMAND_TAG, USER_TAG = "command", "user"
JOINED_TAG = "joined_runs"
"""The number of runs that a run joins."""

FINGERPRINT_TAG, SWEEP_TAG = "fingerprint", "sweep"

ParamValue = str | int | float | bool | None


@dataclass(frozen=True)
class DataPart:
    """Describes a part of the data of a run: one of its graphs, or the links of one role.

    Args:
        role: What the run uses it for, such as `source graph` or `test links`.
        name: The name of the pair of graphs, and the role.
        place: The file or folder that it was read from, or the name of the pair.
        digest: SHA-256 of its content.
        sizes: The number of its entities, triples, links and the like.
    """

    role: str
    name: str
    place: str
    digest: str
    sizes: dict[str, int] = field(default_factory=dict)


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
        data: The graphs and links of the run; empty in the folders of earlier versions.
    """

    run_id: str
    name: str
    experiment: str
    params: dict[str, ParamValue] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    start_time: int = field(default_factory=lambda: now_ms())
    data: tuple[DataPart, ...] = ()


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


NUM_POINTS = "num_points"
"""The key of an ended run's record with the number of points of its series."""

LARGEST = 2**63
"""Integers from here on do not fit into a database column."""

LAST_TIME = 253_402_300_800_000
"""The year 10000 in milliseconds since the epoch; dates end before it."""

Record = TypeVar("Record", bound="DataclassInstance")


def _is_whole(value: Any) -> bool:
    # bool is a subclass of int, but JSON's true is not a number
    return type(value) is int and -LARGEST <= value < LARGEST


CHECKS: dict[Any, Callable[[Any], bool]] = {
    str: lambda value: isinstance(value, str),
    int: _is_whole,
    float: lambda value: isinstance(value, float) or _is_whole(value),
    str | None: lambda value: value is None or isinstance(value, str),
    float | None: lambda value: (
        value is None or isinstance(value, float) or _is_whole(value)
    ),
    ParamValue: lambda value: value is None or isinstance(value, str | int | float),
}
"""What JSON may contain for a type of the records; dictionaries are checked value by value."""


def parsed_record(kind: type[Record], content: Mapping[str, Any]) -> Record:
    """Return a record; unknown fields of later versions are ignored.

    Raises:
        ValueError: If a field is missing or cannot be used.
    """
    found: dict[str, Any] = {}
    for item in fields(kind):
        if item.type == tuple[DataPart, ...]:
            found[item.name] = _parsed_data(content.get(item.name, []))
            continue
        if item.name not in content:
            raise ValueError(f"it lacks {item.name!r}")
        found[item.name] = value = content[item.name]
        inner = get_args(item.type) if get_origin(item.type) is dict else ()
        if inner:
            is_valid = isinstance(value, dict) and all(
                map(CHECKS[inner[1]], value.values())
            )
        elif get_origin(item.type) is tuple:
            is_valid = isinstance(value, tuple)  # of records that were parsed before
        else:
            is_valid = CHECKS[item.type](value)
        if item.name.endswith("time"):
            is_valid = is_valid and 0 <= value < LAST_TIME
        if not is_valid:
            raise ValueError(f"its {item.name!r} cannot be used")
    return kind(**found)


def _parsed_data(content: Any) -> tuple[DataPart, ...]:
    """Return the parts of the data, which are a list of objects in JSON."""
    if not isinstance(content, list) or not all(
        isinstance(one, dict) for one in content
    ):
        raise ValueError("its 'data' cannot be used")
    return tuple(parsed_record(DataPart, one) for one in content)


def flat_params(node: Any, prefix: str = "") -> dict[str, ParamValue]:
    """Return a nested configuration with dotted keys; lists become text."""
    if not isinstance(node, dict):
        value = (
            node
            if isinstance(node, str | int | float | bool) or node is None
            else str(node)
        )
        return {prefix[:-1]: value}
    flat: dict[str, ParamValue] = {}
    for key, value in node.items():
        flat |= flat_params(value, f"{prefix}{key}.")
    return flat


def now_ms() -> int:
    """Return the milliseconds since the epoch."""
    return time.time_ns() // 1_000_000


def start_record(folder: Path, header: RunHeader) -> None:
    """Write the header. Points of another run in this folder are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    series = folder / SERIES_FILE
    if series.is_symlink():
        series.unlink()  # a run does not write through links
    if series.exists():
        same_run = is_run_folder(folder) and read_header(folder).run_id == header.run_id
        # Rewritten even for the same run, because its last line may be incomplete.
        _write_series(folder, read_series(folder) if same_run else [])
    write_checked_json(folder / RUN_FILE, asdict(header) | UNFINISHED)


def log_point(folder: Path, metrics: Mapping[str, float], step: int) -> MetricPoint:
    """Append one line of metrics and return it."""
    values = {name: float(value) for name, value in metrics.items()}
    point = MetricPoint(int(step), now_ms(), values)
    # Opened and closed for each line, so that a kill after this call cannot lose it.
    with open(folder / SERIES_FILE, "a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(point)) + "\n")
    return point


def close_record(
    folder: Path, status: str, reason: str = "", end_time: int | None = None
) -> RunClosing:
    """Write how the run ended into the header; an `end_time` of ``None`` means now."""
    if status not in STATUSES:
        raise ValueError(f"status must be one of {', '.join(STATUSES)}, not {status!r}")
    closing = RunClosing(status, now_ms() if end_time is None else end_time, reason)
    count = {NUM_POINTS: _num_lines(folder)}
    content = asdict(read_header(folder)) | asdict(closing) | count
    write_checked_json(folder / RUN_FILE, content)
    return closing


def _num_lines(folder: Path) -> int:
    """Return the number of complete lines of the series."""
    with suppress(OSError, DataError):  # there is none, or it is not a file of the run
        return read_file(folder / SERIES_FILE).count(b"\n")
    return 0


def check_series(folder: Path, points: Sequence[MetricPoint]) -> None:
    """Raise an error if a run recorded more points than its series has.

    Raises:
        DataError: It did.
    """
    recorded = read_run_file(folder).get(NUM_POINTS)
    if isinstance(recorded, int) and recorded > len(points):
        problem = f"the run wrote {recorded:,} lines, but it has {len(points):,}"
        raise damaged(folder / SERIES_FILE, problem)


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
    content = read_run_file(Path(folder))
    with reading(Path(folder) / RUN_FILE):
        return parsed_record(RunHeader, content)


def read_closing(folder: Path | str) -> RunClosing | None:
    """Return the end of the run in a folder; ``None`` if it is running or was killed.

    Raises:
        UserError: If the folder has no valid `run.json`.
    """
    content = read_run_file(Path(folder))
    if content.get("status") not in STATUSES:
        return None
    with reading(Path(folder) / RUN_FILE):
        return parsed_record(RunClosing, {"reason": "", **content})


def is_finished(folder: Path | str) -> bool:
    """Return whether the run finished.

    Raises:
        UserError: If the folder has no valid `run.json`.
    """
    closing = read_closing(folder)
    return closing is not None and closing.status == "FINISHED"


def continuing_command(header: RunHeader) -> str | None:
    """Return the command to repeat if a run cannot be resumed: one that joins others."""
    return header.tags.get(COMMAND_TAG) if JOINED_TAG in header.tags else None


def check_finished(folder: Path | str) -> None:
    """Raise an error if the run in a folder is not finished.

    Raises:
        DataError: If the run is still running, or it failed or was interrupted.
        UserError: If the folder does not contain a run.
    """
    if is_finished(folder):
        return
    closing = read_closing(folder)
    state = "is still running, or was interrupted"
    if closing is not None:
        state = "failed" if closing.status == "FAILED" else "was interrupted"
    command = (
        continuing_command(read_header(folder))
        or f"emea run resume={quote(str(folder))}"
    )
    raise DataError(
        f"{folder} is not a finished run: it {state}. Continue it with: {command}"
    )


def read_series(folder: Path | str) -> list[MetricPoint]:
    """Read every point. An incomplete last line of a killed run is dropped with a warning.

    Raises:
        UserError: If the file or a line other than the last cannot be read.
    """
    path = Path(folder) / SERIES_FILE
    if not path.exists():
        return []
    with reading(path):
        lines = read_file(path).rstrip(b"\n").split(b"\n")
    points: list[MetricPoint] = []
    for number, line in enumerate(lines, start=1):
        try:
            points.append(parsed_record(MetricPoint, json_object(line)))
        except ValueError as error:
            if number < len(lines):
                problem = f"{path}, line {number} is damaged. Remove that line."
                raise UserError(problem) from error
            if line:
                logger.warning("%s: dropped the incomplete last line %d.", path, number)
    return points


def read_run_file(folder: Path) -> dict[str, Any]:
    """Return the content of a run's header file, unchecked.

    Raises:
        UserError: If the file is missing or damaged.
    """
    if not os.access(folder / RUN_FILE, os.R_OK) or not is_run_folder(folder):
        raise UserError(
            f"{folder} is not a run's folder: it has no readable {RUN_FILE}."
        )
    return read_checked_json(folder / RUN_FILE)
