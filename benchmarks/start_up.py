"""Measures what a first user waits for: the import of the package, and two small graphs aligned.

    python -m benchmarks start-up [--repeats N] [--json FILE]

Both graphs have 100 entities. ``first_align_s`` is ``emea align`` with an empty cache of compiled
loops, as after an installation. ``align_s`` and ``import_s`` (of ``emea.aligner``) are medians of
later commands. Recorded measurements of other machines and commits are printed below them.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.command import bench_parser, print_earlier, write_numbers
from emea.cli.arguments import AT_LEAST_ONE, number_in
from emea.data.sources.synthetic import synthetic_pair

NUM_LABELS = 20


def main(arguments: Sequence[str]) -> None:
    """Run the commands, print their seconds and write them to a file on request."""
    parser = bench_parser("start-up", __doc__)
    parser.add_argument(
        "--repeats",
        type=number_in(AT_LEAST_ONE, int),
        default=3,
        help="runs of each command",
    )
    options = parser.parse_args(arguments)
    numbers = measure(options.repeats)
    for name, seconds in numbers.items():
        print(f"{name:<14} {seconds:.2f}")
        print_earlier("start_up", name, seconds)
    write_numbers(options.json, numbers)


def measure(repeats: int) -> dict[str, float]:
    """Return the seconds of each command."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        cache = {"NUMBA_CACHE_DIR": str(folder / "compiled")}
        align = [sys.executable, "-m", "emea", "align", *write_pair(folder)]
        first, *later = [
            seconds_of([*align, "--out", str(folder / str(number))], folder, cache)
            for number in range(repeats + 1)
        ]
        load = [sys.executable, "-c", "import emea.aligner"]
        imports = [seconds_of(load, folder, cache) for _ in range(repeats)]
    return {
        "first_align_s": first,
        "align_s": statistics.median(later),
        "import_s": statistics.median(imports),
    }


def write_pair(folder: Path) -> list[str]:
    """Write two graphs and some links, and return the arguments of ``emea align``."""
    pair = synthetic_pair(num_entities=100)
    files = [folder / "source.nt", folder / "target.nt"]
    for path, graph in zip(files, (pair.source, pair.target), strict=True):
        statements = [
            f"<{_name(path.stem, head)}> <{_name('relation', kind)}> <{_name(path.stem, tail)}> .\n"
            for head, kind, tail in graph.triples.tolist()
        ]
        path.write_text("".join(statements), encoding="utf-8")
    links = [
        f"{_name('source', source)}\t{_name('target', target)}\n"
        for source, target in pair.links[:NUM_LABELS].tolist()
    ]
    (folder / "links.tsv").write_text("".join(links), encoding="utf-8")
    return [*map(str, files), "--links", str(folder / "links.tsv")]


def _name(kind: str, number: int) -> str:
    return f"http://{kind}.example.org/{number}"


def with_this_package() -> dict[str, str]:
    """Return environment variables with which a process in any folder imports this package."""
    paths = [str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def seconds_of(
    command: Sequence[str],
    folder: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> float:
    """Return the seconds that a command takes; its output is not shown.

    Args:
        command: The program and its arguments.
        folder: The folder to run it in; ``None`` means the current one.
        variables: Environment variables in addition to the current ones.
    """
    environment = {**with_this_package(), **(variables or {})}
    start = time.perf_counter()
    subprocess.run(
        command, check=True, cwd=folder, env=environment, capture_output=True
    )
    return time.perf_counter() - start
