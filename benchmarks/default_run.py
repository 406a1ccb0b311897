"""How long the default run takes, from the command to its end.

python -m benchmarks.default_run [--json FILE]
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from emea.tracking.atomic import write_json
from emea.tracking.provenance import provenance

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    """Run, time, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="file for the numbers")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # tracked as by default, but in a store of its own
        command = [sys.executable, "run.py", f"hydra.run.dir={folder}/run"]
        command += [
            f"tracking.uri=sqlite:///{folder}/mlflow.db",
            f"tracking.artifact_root={folder}",
        ]
        start = time.perf_counter()
        subprocess.run(command, cwd=ROOT, check=True)
        seconds = time.perf_counter() - start
        metrics = json.loads((Path(folder) / "run" / "metrics.json").read_text(encoding="utf-8"))
    kept = {key: metrics[key] for key in ("initial", "final", "protocol", "data", "model")}
    if options.json:
        write_json(options.json, {"seconds": seconds, **kept, **provenance()})
    print(f"{seconds:.0f} s")


if __name__ == "__main__":
    main()
