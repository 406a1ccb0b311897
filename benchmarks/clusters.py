"""Measures duplicates, clusters of several graphs, and the service over HTTP, as JSON lines.

    python -m benchmarks clusters --out experiments/clusters/measurements.jsonl [--cells TEXT ...]
    python -m benchmarks clusters --out FILE --tables

Each cell is one line of the file, with its command, seed, numbers, commit and machine. Cells whose
name contains one of the texts are measured; those that the file has of this commit are left out.
The data sets are read from EMEA_DATA. ``--tables`` prints the rows of the file as Markdown tables.
"""

import contextlib
import csv
import http.client
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np

from benchmarks.command import bench_parser
from emea.cli.main import main as emea
from emea.clusters.duplicates import find_duplicates
from emea.clusters.own_records import own_records
from emea.errors import UserError
from emea.record.provenance import provenance
from tests.clusters import person_graph
from tests.clusters.measure import TABLES, measured, persons, table
from tests.clusters.measure_dbp15k import MeasuredDBP15K
from tests.clusters.measure_several import NOISE, Measured
from tests.clusters.people import f1, pairs_of, with_duplicates

SEEDS = (1, 2, 3)
NUM_NAMES = 1000
PORT = 8765

Numbers = dict[str, Any]
Cell = Callable[[Path, int], Numbers]
"""Measures one cell from the folder of the data sets and a seed; 0 stands for no copies."""


def main(arguments: Sequence[str]) -> None:
    """Measure the cells, or print the tables."""
    options = _parser().parse_args(arguments)
    rows = _rows(options.out)
    if options.tables:
        print(tables(rows))
        return
    data = Path(os.environ.get("EMEA_DATA") or "data")
    if not data.is_dir():
        raise UserError("EMEA_DATA must be the folder of the data sets.")
    where = provenance()
    done = {
        (row["cell"], row["seed"]) for row in rows if row["commit"] == where["commit"]
    }
    for (name, seed), cell in cells().items():
        if (name, seed) in done or not any(one in name for one in options.cells):
            continue
        start = time.process_time()
        with contextlib.redirect_stdout(sys.stderr):
            numbers = cell(data, seed)
        command = f"python -m benchmarks clusters --cells '{name}'"
        row = {"cell": name, "seed": seed, "command": command, **numbers}
        row["cpu_seconds"] = round(time.process_time() - start, 1)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps({**row, **where}) + "\n")
        print(json.dumps(row), flush=True)


def cells() -> dict[tuple[str, int], Cell]:
    """Return all cells by name and seed."""
    found: dict[tuple[str, int], Cell] = {}
    for name in ("persons1 source", "persons1 target", *TABLES):
        for seed in (0, *SEEDS):
            found[f"duplicates {name}", seed] = partial(duplicates, name)
    for seed in (0, *SEEDS):
        found["kinds persons1 source", seed] = kinds
    for noise, number, seed in product(NOISE, (3, 5), SEEDS):
        found[f"several people {noise} {number}", seed] = partial(
            several, noise, number
        )
    for number in (3, 5):
        found[f"several dbp15k {number}", 1] = partial(several_dbp15k, number)
    found["serve zh", 0] = serve
    return found


def duplicates(name: str, data: Path, seed: int) -> Numbers:
    """Measure a table with copies of its rows, or without."""
    if name in TABLES:
        rows = table(data / "tables" / TABLES[name])
    else:
        rows = persons(data / "oaei2010" / "persons1" / f"{name.split()[1]}.nt")
    changed = with_duplicates(rows, seed) if seed else (rows, list(range(len(rows))))
    size, true, found, right, score = measured(*changed)
    return {"rows": size, "true": true, "found": found, "right": right, "f1": score}


def kinds(data: Path, seed: int) -> Numbers:
    """Measure a graph with four kinds of entities, of which people have copies."""
    source = data / "oaei2010" / "persons1" / "source.nt"
    with tempfile.TemporaryDirectory() as folder:
        number = 200 if seed else 0
        graph = person_graph.with_copies(
            source, Path(folder) / "graph.nt", number, seed
        )
    found = pairs_of(find_duplicates(own_records(graph, "graph.nt")).clusters)
    true = person_graph.true_pairs(graph)
    numbers: Numbers = {
        "rows": graph.num_entities,
        "true": len(true),
        "found": len(found),
    }
    numbers["right"] = len(found & true)
    people, same = (person_graph.of_kind(graph, one, "Person") for one in (found, true))
    numbers["f1_people"] = f1(people, same) if same else None
    return numbers


def several(noise: str, number: int, data: Path, seed: int) -> Numbers:
    """Measure what one clustering of tables of people gains over their pairs."""
    rows = persons(data / "oaei2010" / "persons1" / "source.nt")
    with tempfile.TemporaryDirectory() as folder:
        one = Measured(rows, number, seed, Path(folder), noise)
        alone, together = one.alone(), one.together()
    return {
        "f1_alone": f1(alone, one.true),
        "f1_together": f1(together, one.true),
        "closed_alone": one.closed(alone),
        "closed_together": one.closed(together),
    }


def several_dbp15k(number: int, data: Path, seed: int) -> Numbers:
    """Measure what one clustering of graphs of DBP15K gains over their pairs."""
    with tempfile.TemporaryDirectory() as folder:
        one = MeasuredDBP15K(data / "dbp15k", number, seed, Path(folder))
        alone, together = one.alone(), one.together()
    return {
        "labels": len(one.labels),
        "f1_alone": f1(one.judged(alone), one.true),
        "f1_together": f1(one.judged(together), one.true),
        "closed_alone": one.closed(alone),
        "closed_together": one.closed(together),
    }


def serve(data: Path, seed: int) -> Numbers:
    """Measure queries with a typing error over HTTP, one by one and as one batch."""
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        settings = ["data=dbp15k_zh", "method=paris", "tracking=none"]
        assert emea(["run", *settings, f"hydra.run.dir={run}"]) == 0
        command = [sys.executable, "-m", "emea", "serve", str(run), "--port", str(PORT)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
            try:
                assert service.stdout is not None and service.stdout.readline()
                return _queried(_misspelt(data, rng))
            finally:
                service.terminate()


def _misspelt(data: Path, rng: np.random.Generator) -> list[str]:
    """Return the names of random entities of the English side, each without one letter."""
    path = data / "dbp15k" / "zh_en" / "ent_ids_2"
    with path.open(encoding="utf-8") as file:
        reader = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        titles = [iri.rsplit("/", 1)[1].replace("_", " ") for _, iri in reader]
    found = []
    for name in rng.choice(titles, NUM_NAMES, replace=False).tolist():
        place = int(rng.integers(len(name)))
        found.append(name[:place] + name[place + 1 :])
    return found


def _queried(names: Sequence[str]) -> Numbers:
    """Return the milliseconds of each query, and the seconds of a batch of all of them."""
    milliseconds = []
    for name in names:
        milliseconds.append(1000 * _seconds({"q": {"query": name}}))
    batch = _seconds({str(place): {"query": name} for place, name in enumerate(names)})
    return {
        "queries": len(names),
        "p95_ms": float(np.percentile(milliseconds, 95)),
        "mean_ms": float(np.mean(milliseconds)),
        "batch_seconds": batch,
        "batch_mean_ms": 1000 * batch / len(names),
    }


def _seconds(queries: Numbers) -> float:
    """Send a batch of queries, and return how long the answer took."""
    body = urlencode({"queries": json.dumps(queries)})
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    start = time.perf_counter()
    connection.request("POST", "/reconcile", body, kind)
    answer = connection.getresponse()
    found = json.loads(answer.read())
    seconds = time.perf_counter() - start
    connection.close()
    assert answer.status == 200 and found.keys() == queries.keys()
    return seconds


def tables(rows: Sequence[Numbers]) -> str:
    """Return a Markdown table for each kind of cells, from the last row of each cell and seed."""
    last = {(row["cell"], row["seed"]): row for row in rows}
    lines: list[str] = []
    columns: list[str] = []
    for row in last.values():
        shown = [key for key in row if key not in (*HIDDEN, "cell", "seed")]
        if shown != columns:
            columns = shown
            lines += ["", f"| cell | seed | {' | '.join(shown)} | commit |"]
            lines.append("|---" * (len(shown) + 3) + "|")
        numbers = " | ".join(_shown(row[key]) for key in shown)
        lines.append(
            f"| {row['cell']} | {row['seed']} | {numbers} | {row['commit'][:8]} |"
        )
    return "\n".join(lines[1:])


HIDDEN = (
    "command",
    "commit",
    "dirty",
    "emea_version",
    "python",
    "torch",
    "numpy",
    "platform",
    "machine",
    "cpu_count",
    "gpu",
)
"""Keys of a row that its table does not show."""


def _shown(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}"


def _rows(file: Path) -> list[Numbers]:
    """Return the rows of the file, if it exists."""
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _parser() -> Any:
    parser = bench_parser("clusters", __doc__, has_file=False)
    parser.add_argument("--out", type=Path, required=True, help="file of the rows")
    parser.add_argument(
        "--cells", nargs="+", default=[""], metavar="TEXT", help="parts of names"
    )
    parser.add_argument(
        "--tables", action="store_true", help="print the rows as tables"
    )
    return parser
