"""Reads a file in a child process first, so that a crash of a native parser is reported.

The parsers of RDF and Parquet are written in Rust and C++. Their errors become Python exceptions,
but a crash would end the process without a message.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from emea.data.formats.limits import current_limits, reading_limits
from emea.errors import DataError

P = ParamSpec("P")
T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[3]


def tried_first(
    read: Callable[Concatenate[Path, P], T],
) -> Callable[Concatenate[Path, P], T]:
    """Return a reader that first reads the file in a child process.

    The content is read again in this process, because sending it takes about as long. Errors in the
    child are ignored, because the second reading raises them.

    Args:
        read: A function of a module. Its first argument is a path, and the others are plain values.
    """

    def tried(path: Path, /, *args: P.args, **kwargs: P.kwargs) -> T:
        task = {
            "reader": [read.__module__, read.__name__],
            "path": str(path),
            "args": [list(one) if isinstance(one, tuple) else one for one in args],
            "kwargs": kwargs,
            "limits": asdict(current_limits()),
        }
        _check_child(path, json.dumps(task))
        return read(path, *args, **kwargs)

    return tried


def _check_child(path: Path, task: str) -> None:
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-m", __name__],
        input=task,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode == 0:
        return
    cause = f"exit status {done.returncode}"
    if done.returncode < 0:
        cause = signal.Signals(-done.returncode).name
    if done.returncode == -signal.SIGKILL:
        cause += ", probably because memory ran out"
    raise DataError(
        f"{path.name}: the process that read this file crashed ({cause}). Check the file, or "
        "convert it to TSV, which needs no native parser."
    )


def main() -> None:
    """Read the file of the task on standard input, and end without a result."""
    task = json.load(sys.stdin)
    module, name = task["reader"]
    read = getattr(import_module(module), name)
    with suppress(BaseException), reading_limits(task["limits"]):
        read(Path(task["path"]), *task["args"], **task["kwargs"])
    os._exit(0)


if __name__ == "__main__":
    main()
