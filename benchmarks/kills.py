"""Long commands that are killed at random times, and continued.

``python -m benchmarks.kills FOLDER [NUMBER [KIND ...]]`` kills each kind of work NUMBER times
(default: 12), in turns with SIGKILL and SIGINT, repeats or resumes it, and compares its files with
those of work that was not killed. It prints a JSON object per kill. Sweeps need the extra
``joblib``.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open

SMALL = (
    "data.num_entities=100 ratio=0.3 split.num_validation=8 trainer=cpu tracking=none"
)
SMALL += (
    " em=one_to_one em.iterations=1 model.initial_epochs=4 model.epochs_per_iteration=2"
)
MEMBERS = "ensemble=models ensemble.models.dual_amn=null"
SWEEP = "run -m hydra/launcher=joblib hydra.launcher.n_jobs=2 skip_recorded=true"
TABLES = "method=paris literals=similar tracking=none"
WORKS = {
    "ensemble": (f"run {SMALL} {MEMBERS} hydra.run.dir=half", "run resume=half"),
    "update": ("update run --links links.tsv --complete --out half",) * 2,
    "local update": ("update run --links links.tsv --out half",) * 2,
    "divide": (
        "divide data=synthetic data.num_entities=300 ratio=0.3 --parts 3 --out half",
    )
    * 2,
    "join": ("join division --out half",) * 2,
    "predict": ("predict run --formats nt sssom jsonl alignment --out half",) * 2,
    "suggest": ("suggest run --out half",) * 2,
    "show": ("show run --no-open --out half/page.html",) * 2,
    "merge": ("merge run --out half/merged.nt",) * 2,
    "dedupe": ("dedupe a.tsv --out half",) * 2,
    "report": ("report --runs run --out half",) * 2,
    "several": (f"align a.tsv b.tsv c.tsv {TABLES} --out half",) * 2,
    "sweep": (f"{SWEEP} {SMALL} seed=0,1,2 hydra.sweep.dir=half",) * 2,
}
"""Commands that write the folder ``half``, and commands that continue them."""

OTHERS = (".running", "outcome.json")
"""Files of a lock, and of a job of a sweep that was not run again."""

RESULTS = (
    *(
        "alignment.tsv",
        "ranks.npz",
        "beliefs.npz",
        "changes.tsv",
        "alignment.nt",
        "merged.nt",
    ),
    *("division.json", "entities.npz", "pair.npz", "suggestions.tsv", "page.html"),
)

LAST = {
    "ensemble": "ranks.npz",
    "update": "changes.tsv",
    "local update": "changes.tsv",
    "divide": "division.json",
    "join": "ranks.npz",
    "predict": "prediction.json",
    "suggest": "review.html",
    "show": "page.html",
    "merge": "merged.nt",
    "dedupe": "dedupe.json",
    "report": "report.html",
    "several": "clusters.tsv",
    "sweep": "ranks.npz",
}
"""A file that each kind of work writes near its end."""


def started(command: str, base: Path) -> int:
    """Call a command in a forked process, which begins a group, and return its id."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        os.setsid()
        os.chdir(base)
        output = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        from emea.cli.main import main

        status = main(command.split())
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    os._exit(status)


def ended(command: str, base: Path) -> tuple[int, str]:
    """Call a command and return its status and output."""
    _, status = os.waitpid(started(command, base), 0)
    return os.waitstatus_to_exitcode(status), (base / "output.txt").read_text()


def killed(
    command: str,
    base: Path,
    seconds: float,
    group: bool = True,
    how: int = signal.SIGKILL,
) -> tuple[bool, float]:
    """Kill a command that long after its folder exists.

    Args:
        command: The command.
        base: The current folder of the command.
        seconds: The time; infinite to let the command end.
        group: Kill all processes of the command. Otherwise workers of a sweep stay.
        how: The signal.

    Returns:
        Whether it was killed, and for how long the folder existed.
    """
    process, begin = started(command, base), None
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        begin = begin or (time.monotonic() if (base / "half").exists() else None)
        if begin is not None and time.monotonic() - begin >= seconds:
            (os.killpg if group else os.kill)(process, how)
            os.waitpid(process, 0)
            return True, seconds
        time.sleep(0.005)
    return False, time.monotonic() - (begin or time.monotonic())


def damaged(folder: Path) -> Iterator[str]:
    """Return the files that cannot be read."""
    for path in sorted(path for path in folder.rglob("*.*") if path.is_file()):
        try:
            if path.suffix == ".json":
                json.loads(path.read_bytes())
            elif path.suffix == ".npz":
                with np.load(path) as arrays:
                    _ = [arrays[name] for name in arrays.files]
            elif path.suffix == ".safetensors":
                with safe_open(path, "np") as tensors:
                    _ = [tensors.get_tensor(name) for name in tensors.keys()]  # noqa: SIM118
        except Exception as error:
            yield f"{path.relative_to(folder)}: {error}"


def contents(folder: Path) -> dict[str, bytes]:
    """Return all files, with their content if it must be the same in each repetition."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        if path.name in RESULTS
        else b""
        for path in folder.rglob("*")
        if path.is_file() and path.name not in OTHERS
    }


def attempts(kind: str, base: Path, number: int) -> Iterator[dict[str, Any]]:
    """Kill the work and continue it, several times."""
    (start, repeat), folder, chosen = WORKS[kind], base / "half", random.Random(kind)
    shutil.rmtree(folder, ignore_errors=True)
    _, seconds = killed(start, base, float("inf"))
    expected = contents(folder)
    assert any(name.endswith(LAST[kind]) for name in expected), (
        base / "output.txt"
    ).read_text()
    for attempt in range(number):
        shutil.rmtree(folder)
        how = (signal.SIGKILL, signal.SIGINT)[attempt % 2]
        is_killed, after = killed(
            start, base, seconds * chosen.random(), attempt % 3 < 2, how
        )
        faults = list(damaged(folder))
        is_begun = kind == "sweep" or (folder / "run.json").exists()
        status, text = ended(repeat if is_begun else start, base)
        found = contents(folder)
        names = {*expected, *found}
        faults += sorted(
            name for name in names if expected.get(name) != found.get(name)
        )
        faults += ["traceback"] if "Traceback (most recent call last)" in text else []
        end = text.strip().splitlines()[-1:] if status else []
        said = {
            "kind": kind,
            "killed": is_killed,
            "signal": how.name,
            "after_s": round(after, 2),
            "status": status,
        }
        yield {**said, "faults": faults, "end": end}


def prepare(base: Path) -> None:
    """Make the run that is updated, and its links."""
    base.mkdir(parents=True)
    status, text = ended(f"run {SMALL} hydra.run.dir=run", base)
    assert status == 0, text
    rows = (base / "run" / "alignment.tsv").read_text().splitlines()[1:6]
    links = ["\t".join(row.split("\t")[:2]) for row in rows]
    (base / "links.tsv").write_text("\n".join(links) + "\n")
    for side in "abc":
        names = [f"{side}{number}\tName number {number // 2}" for number in range(60)]
        (base / f"{side}.tsv").write_text("\n".join(["id\tname", *names]) + "\n")
    divided = "data=synthetic data.num_entities=300 ratio=0.3 split.num_validation=20"
    parts = (
        "run data=part data.division=division tracking=none trainer=cpu model=lightea"
    )
    for command in (
        f"divide {divided} --parts 2 --out division",
        f"{parts} model.encoder.dim=64 em=one_to_one em.iterations=1 data.part=0 "
        "hydra.run.dir=division/runs/0",
        f"{parts} model.encoder.dim=64 em=one_to_one em.iterations=1 data.part=1 "
        "hydra.run.dir=division/runs/1",
    ):
        status, text = ended(command, base)
        assert status == 0, text


if __name__ == "__main__":
    place = Path(sys.argv[1]).resolve()
    import emea.run.job
    import emea.update.updating  # noqa: F401

    prepare(place)
    times = int(sys.argv[2]) if len(sys.argv) > 2 else 12
    for one in sys.argv[3:] or WORKS:
        for outcome in attempts(one, place, times):
            print(json.dumps(outcome), flush=True)
