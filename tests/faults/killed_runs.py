"""Kills a run before each of its file operations, then resumes it and compares the results.

``python -m tests.faults.killed_runs FOLDER SETTING ...`` prints a JSON object for each kill. Each
run is a forked process, so that torch is imported once.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SETTINGS = (
    *("tracking=none", "trainer=cpu", "data.num_entities=100", "ratio=0.2"),
    *("split.num_validation=10", "model.initial_epochs=4", "trainer.block_size=2"),
    "trainer.checkpoint_minutes=0",  # a checkpoint after each block of steps
)
EM_SETTINGS = ("em.iterations=1", "model.epochs_per_iteration=2")
RESULTS = ("alignment.tsv", "ranks.npz", "beliefs.npz", "checkpoint.safetensors")
CHANGING = ("os.rename", "os.remove", "os.mkdir", "os.chmod", "os.truncate", "os.link")


class Killer:
    """Ends the process with SIGKILL before a file operation in a folder.

    Args:
        folder: Operations elsewhere are not counted.
        number: The operation before which the process ends, from 0.
        log: A file that receives the name of the operation.
    """

    def __init__(self, folder: Path, number: int, log: Path) -> None:
        self.folder = str(folder)
        self.left = number
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Count an operation that changes files; the other events of Python are ignored."""
        if event == "open":
            path, mode, flags = arguments
            writes = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_APPEND)
            if not writes and not set(mode or "") & set("wax+"):
                return
        elif event not in CHANGING:
            return
        path = str(arguments[0])
        changes_nothing = (event, os.path.lexists(path)) in (
            ("os.mkdir", True),
            ("os.remove", False),
        )
        if changes_nothing or not path.startswith(self.folder):
            return
        if self.left == 0:
            os.write(self.log, f"{event} {Path(path).name}".encode())
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= 1


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


def main(base: Path, settings: list[str]) -> None:
    """Kill the run before its first, second, third ... file operation until it finishes."""
    import torch

    from emea.config.overrides import composed
    from emea.config.schema import register_schema
    from emea.record.run_record import is_finished, is_run_folder
    from emea.run.job import run_job
    from emea.run.resuming import config_to_resume

    torch.set_num_threads(1)
    register_schema()
    config = composed([*SETTINGS, *settings])
    whole, half, log = base / "whole", base / "half", base / "log"

    def resume() -> None:
        if not is_run_folder(half):
            run_job(config, half)
        elif not is_finished(half):
            run_job(config_to_resume(half), half, resumes=True)

    def killed(number: int) -> None:
        sys.addaudithook(Killer(half, number, log))
        run_job(config, half)

    assert in_process(lambda: run_job(config, whole) and None) == 0
    for number in range(10_000):
        shutil.rmtree(half, ignore_errors=True)
        status = in_process(lambda number=number: killed(number))
        if status == 0:
            return
        outcome = f"status {status}"
        if status == -signal.SIGKILL:
            outcome = "resumed with the same result" if in_process(resume) == 0 else "not resumed"
            differing = [name for name in RESULTS if not _same(whole / name, half / name)]
            left = sorted(set(os.listdir(half)) ^ set(os.listdir(whole)))
            if differing or left:
                outcome = f"other files: {', '.join([*differing, *left])}"
        print(json.dumps({"operation": log.read_text(), "outcome": outcome}), flush=True)


def _same(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.read_bytes() == other.read_bytes()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), sys.argv[2:])
