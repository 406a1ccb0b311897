"""Measures the time and memory of reading a large N-Triples file into a graph.

python -m benchmarks load-ntriples [--num-triples N] [--literals SHARE] [--folder DIR] [--json FILE]

Each file is read in a separate process, whose peak memory is measured.
"""

import argparse
import gzip
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import bench_parser, write_numbers
from benchmarks.start_up import with_this_package
from emea.cli.arguments import AT_LEAST_ONE, number_in
from emea.data.formats.graph_file import read_graph_file
from emea.setting import SHARE

BLOCK = 100_000
ENTITY = "<http://data.example.org/resource/collection/Entity_{:08d}_of_the_world>"
RELATION = "<http://data.example.org/ontology/property/relation{}>"
NOTE = "machine shared with other work: times vary by a half and more"


def main(arguments: Sequence[str]) -> None:
    """Write the files, read each of them and print the measurements."""
    parser = bench_parser("load-ntriples", __doc__)
    parser.add_argument(
        "--num-triples", type=number_in(AT_LEAST_ONE, int), default=10_000_000
    )
    parser.add_argument(
        "--literals",
        type=number_in(SHARE, float),
        default=0.3,
        help="share in the mixed file",
    )
    parser.add_argument("--folder", type=Path, help="where the files are made and left")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.read:
        read(options.read)
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        files = make_files(folder, options.num_triples, options.literals)
        readings = {what: measured(path) for what, path in files.items()}
    load = os.getloadavg()[0]
    for what, numbers in readings.items():
        print(what, numbers)
    settings = {"num_lines": options.num_triples, "literals_in_mixed": options.literals}
    write_numbers(
        options.json, {**settings, **readings, "load_average": load, "note": NOTE}
    )


def make_files(folder: Path, num_triples: int, literals: float) -> dict[str, Path]:
    """Write three files: IRIs only, the same compressed, and with literals."""
    folder.mkdir(parents=True, exist_ok=True)
    plain, packed, mixed = (
        folder / name for name in ("iris.nt", "iris.nt.gz", "mixed.nt")
    )
    with plain.open("w") as file, gzip.open(packed, "wt", compresslevel=1) as zipped:
        for text in ntriples(num_triples, literals=0.0):
            file.write(text)
            zipped.write(text)
    with mixed.open("w") as file:
        file.writelines(ntriples(num_triples, literals))
    return {"iris": plain, "iris_gz": packed, "mixed": mixed}


def ntriples(num_triples: int, literals: float) -> Iterator[str]:
    """Yield lines of a random graph with hubs and three triples for each entity."""
    rng = np.random.default_rng(0)
    num_entities = max(1, num_triples * 3 // 10)
    for start in range(0, num_triples, BLOCK):
        size = min(BLOCK, num_triples - start)
        heads = rng.integers(0, num_entities, size).tolist()
        tails = (num_entities * rng.random(size) ** 2).astype(int).tolist()
        relations = (600 * rng.random(size) ** 3).astype(int).tolist()
        described = (rng.random(size) < literals).tolist()
        columns = zip(heads, relations, tails, described, strict=True)
        yield "".join(line(*row) for row in columns)


def line(head: int, relation: int, tail: int, is_literal: bool) -> str:
    """Return one triple as a line of N-Triples."""
    value = f'"A note on {tail} and others"@en' if is_literal else ENTITY.format(tail)
    return f"{ENTITY.format(head)} {RELATION.format(relation)} {value} .\n"


def measured(path: Path) -> dict[str, Any]:
    """Return the seconds and peak memory of one reading."""
    command = [sys.executable, "-m", "benchmarks", "load-ntriples", "--read", str(path)]
    done = subprocess.run(
        command, env=with_this_package(), check=True, capture_output=True, text=True
    )
    seconds, cpu_seconds, memory, num_triples, num_entities = done.stdout.split()
    return {
        "seconds": float(seconds),
        "cpu_seconds": float(cpu_seconds),
        "peak_memory_gb": float(memory),
        "num_triples": int(num_triples),
        "num_entities": int(num_entities),
        "file_mb": round(path.stat().st_size / 1e6),
    }


def read(path: Path) -> None:
    """Read a file and print the time and memory that it took."""
    start, cpu_start = time.perf_counter(), time.process_time()
    graph, _ = read_graph_file(path)
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    memory = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    )  # in KiB on Linux
    print(
        f"{seconds:.4f} {cpu:.4f} {memory:.3f} {graph.num_triples} {graph.num_entities}"
    )
