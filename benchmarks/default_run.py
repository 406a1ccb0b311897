"""Measures how long the default run takes, from the command to its end.

    python -m benchmarks default-run [--json FILE]

Recorded measurements of other machines and commits are printed below it.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import bench_parser, print_earlier, write_numbers
from benchmarks.start_up import with_this_package


def main(arguments: Sequence[str]) -> None:
    """Run the default configuration and print its duration."""
    parser = bench_parser("default-run", __doc__)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        # tracked as by default, but in a separate store
        command = [sys.executable, "-m", "emea", "run", f"hydra.run.dir={folder}/run"]
        command += [
            f"tracking.uri=sqlite:///{folder}/mlflow.db",
            f"tracking.artifact_root={folder}",
        ]
        start = time.perf_counter()
        subprocess.run(command, cwd=folder, env=with_this_package(), check=True)
        seconds = time.perf_counter() - start
        metrics = json.loads(
            (Path(folder) / "run" / "metrics.json").read_text(encoding="utf-8")
        )
    kept = {
        key: metrics[key] for key in ("initial", "final", "protocol", "data", "model")
    }
    write_numbers(options.json, {"seconds": seconds, **kept})
    print(f"{seconds:.0f} s")
    print_earlier("default_run", "seconds", seconds)
