"""Kills a run before each of its file operations, then resumes it and compares the results.

``python -m tests.faults.killed_runs FOLDER SETTING ...`` prints a JSON object for each kill, and
``python -m tests.faults.killed_runs FOLDER update RUN ARGUMENT ...`` does the same for an update of
a finished run. Each run is a forked process, so that torch is imported once.
"""

import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

SETTINGS = (
    *("tracking=none", "trainer=cpu", "data.num_entities=100", "ratio=0.2"),
    *("split.num_validation=10", "model.initial_epochs=4", "trainer.block_size=2"),
)
EM_SETTINGS = ("em.iterations=1", "model.epochs_per_iteration=2")
RESULTS = ("alignment.tsv", "ranks.npz", "beliefs.npz", "checkpoint.safetensors")
Work = Callable[[Path], None]
RANDOM_PART = re.compile(r"[.][0-9a-f]{16}[.]tmp$")
CHANGING = ("os.rename", "os.remove", "os.mkdir", "os.chmod", "os.truncate", "os.link")


def operation(folder: Path, event: str, arguments: tuple[Any, ...]) -> str | None:
    """Return the name of an operation that changes files in a folder; ``None`` for other events.

    The name does not contain the random part of a temporary file's name.
    """
    if event == "open":
        _, mode, flags = arguments
        writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND)
        if not writes and not set(mode or "") & set("wax+"):
            return None
    elif event not in CHANGING:
        return None
    path = str(arguments[0])
    changes_nothing = (event, os.path.lexists(path)) in (
        ("os.mkdir", True),
        ("os.remove", False),
    )
    if changes_nothing or not path.startswith(str(folder)):
        return None
    return f"{event} {RANDOM_PART.sub('.tmp', Path(path).name)}"


def log_operations(folder: Path, log: Path) -> None:
    """Write the name of each operation in a folder to a file, until the process ends."""
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def noted(event: str, arguments: tuple[Any, ...]) -> None:
        if name := operation(folder, event, arguments):
            os.write(file, f"{name}\n".encode())

    sys.addaudithook(noted)


def kill_before(folder: Path, name: str, occurrence: int) -> None:
    """End the process with SIGKILL before an operation in a folder.

    Threads write files in any order, so an operation is identified by its name.

    Args:
        folder: The folder.
        name: The name of the operation.
        occurrence: Which of several operations of this name, from 0.
    """
    earlier = [0]

    def counted(event: str, arguments: tuple[Any, ...]) -> None:
        if operation(folder, event, arguments) == name:
            if earlier[0] == occurrence:
                os.kill(os.getpid(), signal.SIGKILL)
            earlier[0] += 1

    sys.addaudithook(counted)


def in_process(work: Callable[[], None]) -> int:
    """Run a function in a forked process, and return its exit status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        work()
        status = 0
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
    os._exit(status)


def main(base: Path, arguments: list[str]) -> None:
    """Kill a run, or an update of a run, at every file operation."""
    import torch

    torch.set_num_threads(1)
    if arguments[:1] == ["update"]:
        # a file takes three operations, so every second one is at least one of each file
        kill_everywhere(
            base, *_update(arguments[1:]), (*RESULTS[:3], "changes.tsv"), every=2
        )
    else:
        kill_everywhere(base, *_run(arguments), RESULTS)


def _run(settings: list[str]) -> tuple[Work, Work]:
    """Return functions that start a run in a folder, and that resume it."""
    from emea.config.composition import composed
    from emea.errors import DataError
    from emea.record.run_record import is_finished, is_run_folder
    from emea.run.job import run_job
    from emea.run.resuming import config_to_resume

    config = composed([*SETTINGS, *settings])

    def start(folder: Path) -> None:
        run_job(config, folder)

    def resume(folder: Path) -> None:
        if not is_run_folder(folder):
            start(folder)
        elif is_finished(folder):
            with suppress(DataError):  # says that it is finished
                config_to_resume(folder)
        else:
            run_job(config_to_resume(folder), folder, resumes=True)

    return start, resume


def _update(arguments: list[str]) -> tuple[Work, Work]:
    """Return functions that update a run; the same command continues an interrupted update."""
    from emea.cli.update import main as update

    def start(folder: Path) -> None:
        assert update([*arguments, "--out", str(folder)]) == 0

    def resume(folder: Path) -> None:
        if not (folder / "update.json").exists():
            start(folder)

    return start, resume


def places_to_kill(names: Sequence[str]) -> list[tuple[str, int]]:
    """Return the operations before which to kill, each with its number among those of its name.

    Of many operations of one name, such as a line appended for each point, these are the first two,
    one in the middle and the last one.
    """
    occurrences = [
        (name, names[:place].count(name)) for place, name in enumerate(names)
    ]
    kept = []
    for name, occurrence in occurrences:
        total = names.count(name)
        if occurrence in (0, 1, total // 2, total - 1):
            kept.append((name, occurrence))
    return kept


def kill_everywhere(
    base: Path, start: Work, resume: Work, results: Sequence[str], every: int = 1
) -> None:
    """Kill the work before each of its file operations; of repeated ones, before some.

    Args:
        base: Folder of the work's folders.
        start: Does the work in a folder.
        resume: Continues the work in a folder.
        results: Files that must be the same as without a kill.
        every: Distance of the operations at which it is killed.
    """
    whole, half, log = base / "whole", base / "half", base / "log"

    def logged() -> None:
        log_operations(half, log)
        start(half)

    def killed(name: str, occurrence: int) -> None:
        kill_before(half, name, occurrence)
        start(half)

    assert in_process(lambda: start(whole)) == 0
    assert in_process(logged) == 0
    names = log.read_text().splitlines()
    for name, occurrence in places_to_kill(names)[::every]:
        shutil.rmtree(half, ignore_errors=True)
        status = in_process(partial(killed, name, occurrence))
        outcome = f"status {status}"
        if status == -signal.SIGKILL:
            is_resumed = in_process(lambda: resume(half)) == 0
            outcome = "resumed with the same result" if is_resumed else "not resumed"
            differing = [
                name for name in results if not _same(whole / name, half / name)
            ]
            left = sorted(set(os.listdir(half)) ^ set(os.listdir(whole)))
            if differing or left:
                outcome = f"other files: {', '.join([*differing, *left])}"
        print(json.dumps({"operation": name, "outcome": outcome}), flush=True)


def _same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.read_bytes() == other.read_bytes()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
