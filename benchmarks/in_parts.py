"""Compares one alignment with the same alignment in parts: accuracy, time and memory.

    python -m benchmarks in-parts data=contea_fr_en ratio=0.2 split.num_validation=800 --parts 4 8
        --method model=lightea em=one_to_one em.iterations=1 [--launcher hydra/launcher=ray]
        [--without-whole] [--folder DIR] [--json FILE]

Each command is a process of its own, one after the other. With ``--launcher``, the parts are the
jobs of one sweep; processes of a cluster do not count in its processor time.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import bench_parser, write_numbers
from benchmarks.start_up import with_this_package
from emea.cli.arguments import AT_LEAST_ONE, number_in
from emea.errors import UserError
from emea.record.run_folder import METRICS_FILE

ALWAYS = ("tracking=none",)


def main(arguments: Sequence[str]) -> None:
    """Align the whole and the parts, and print the measurements."""
    parser = bench_parser("in-parts", __doc__)
    parser.add_argument("data", nargs="+", help="settings of the data and the split")
    parser.add_argument(
        "--parts", nargs="+", type=number_in(AT_LEAST_ONE, int), required=True
    )
    parser.add_argument(
        "--method", nargs="+", default=[], help="settings of the method"
    )
    parser.add_argument(
        "--launcher", nargs="+", default=[], help="settings of the launcher"
    )
    parser.add_argument(
        "--without-whole", action="store_true", help="only align the parts"
    )
    parser.add_argument("--folder", type=Path, help="where the runs are made and left")
    options = parser.parse_args(arguments)
    numbers: dict[str, Any] = {"data": options.data, "method": options.method}
    numbers["launcher"] = options.launcher
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if not options.without_whole:
            whole = folder / "whole"
            spent = measured(
                "run", *options.data, *options.method, *ALWAYS, in_folder(whole)
            )
            numbers["whole"] = {**spent, **scores(whole)}
            print("whole", numbers["whole"], flush=True)
        for number in options.parts:
            found = in_parts(folder / f"parts-{number}", number, options)
            numbers[f"{number} parts"] = found
            print(number, "parts", found, flush=True)
    write_numbers(options.json, numbers)


def in_parts(division: Path, number: int, options: Any) -> dict[str, Any]:
    """Divide, align each part, and join."""
    divided = measured(
        "divide", *options.data, "--parts", str(number), "--out", str(division)
    )
    runs = division / "runs"
    method = ["data=part", f"data.division={division}", *options.method, *ALWAYS]
    started = time.perf_counter()
    if options.launcher:
        parts = ",".join(map(str, range(number)))
        sweep = [
            f"data.part={parts}",
            f"hydra.sweep.dir={runs}",
            "hydra.sweep.subdir=${data.part}",
        ]
        spent = [measured("run", "-m", *method, *sweep, *options.launcher)]
    else:
        jobs = [
            [f"data.part={part}", in_folder(runs / str(part))] for part in range(number)
        ]
        spent = [measured("run", *method, *job) for job in jobs]
    seconds = time.perf_counter() - started
    joined = measured("join", str(division))
    of_parts = [scores(runs / str(part)) for part in range(number)]
    return {
        "divide": divided,
        "parts": {
            "seconds": seconds,
            "cpu_seconds": sum(one["cpu_seconds"] for one in spent),
            "peak_memory_mb": max(one["peak_memory_mb"] for one in of_parts),
        },
        "join": joined,
        "division": {
            key: value
            for key, value in json.loads(
                (division / "division.json").read_text()
            ).items()
            if isinstance(value, int | float)
        },
        **scores(division / "joined"),
    }


def in_folder(folder: Path) -> str:
    """Return the setting that makes a run write into the folder."""
    return f"hydra.run.dir={folder}"


def measured(*command: str) -> dict[str, float]:
    """Run a command of emea and return its time and the peak of its memory.

    Raises:
        UserError: If the command fails.
    """
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "emea", *command],
        env=with_this_package(),
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise UserError(
            f"emea {' '.join(command)} ended with status {process.returncode}"
        )
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "process_memory_mb": usage.ru_maxrss / 1024,
    }


def scores(folder: Path) -> dict[str, Any]:
    """Return the accuracy of a run, and the peak of its memory."""
    metrics = json.loads((folder / METRICS_FILE).read_text(encoding="utf-8"))
    final = metrics.get("final") or {}
    return {
        "hit@1": final.get("hit@1"),
        "mrr": final.get("mrr"),
        "peak_memory_mb": metrics.get("peak_memory_mb"),
        "share": ((metrics.get("counterparts") or {}).get("source") or {}).get("value"),
    }
