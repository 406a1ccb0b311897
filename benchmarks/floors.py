"""Measures commands and parts of runs as ratios to a floor of the same machine.

    python -m benchmarks floors [--check] [--record] [--json FILE]

Times depend on the machine and on what else it does. So each command is divided by the CPU seconds
of ``import torch``, which all of them need, and each part of a run by those of a matrix product or
of reading memory. All numbers are CPU seconds with one thread. Three rounds measure everything in
turn, and a ratio is that of the medians. Recorded ratios are in ``experiments/speed/ratios.json``:
``--check`` fails if a ratio is more than 1.3 times the recorded one twice, and ``--record`` writes
the file.
"""

import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from benchmarks.command import bench_parser, write_numbers
from benchmarks.run_parts import built_parts, training_step
from benchmarks.start_up import with_this_package
from emea.baselines.paris_reasoner import ParisReasoner
from emea.data.sources.synthetic import synthetic_pair
from emea.errors import UserError
from emea.runtime.threads import one_thread
from experiments.archive.study import EXPERIMENTS
from experiments.origins import machine_of, short_commit

RECORD = EXPERIMENTS / "speed" / "ratios.json"

EXAMPLES = EXPERIMENTS.parent / "docs" / "examples"

ROUNDS = 3

MOST_SECONDS = 150
"""Seconds for which ``--check`` measures. What has begun is finished, and CI allows 240 s."""

MOST = 1.3
"""Largest ratio to the recorded value."""

NUM_SMALL = 340, 2_260
"""Entities of the graphs without links, as in the restaurants of OAEI 2010."""

NUM_ENTITIES = 2_000
"""Entities of each synthetic graph."""

LEAST_SECONDS = 0.2
"""CPU seconds for which work in this process is repeated."""

IMPORT, PRODUCT, READING = "import torch", "matrix product", "reading 64 MB"
"""The floors."""

ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"
)


class Cell(NamedTuple):
    """What is measured.

    Args:
        cpu_seconds: Does the work and returns its CPU seconds.
        floor: The name of its floor.
    """

    cpu_seconds: Callable[[], float]
    floor: str


def main(arguments: Sequence[str]) -> None:
    """Measure all ratios, print them, and compare them with the recorded ones on request."""
    parser = bench_parser("floors", __doc__)
    parser.add_argument(
        "--check", action="store_true", help="fail if a ratio is much worse"
    )
    parser.add_argument(
        "--record", action="store_true", help="write the recorded ratios"
    )
    options = parser.parse_args(arguments)
    recorded = read_record()
    # a busy machine measures less, instead of exceeding the limit of CI
    end = time.monotonic() + (MOST_SECONDS if options.check else math.inf)
    confirmed: list[str] = []
    with one_thread(), tempfile.TemporaryDirectory() as folder:
        cells = {**commands_in(Path(folder)), **parts_of_runs()}
        ratios = measured(cells, end)
        slow = slower(ratios, recorded) if options.check else []
        if slow:  # other processes may have disturbed it
            again = measured({name: cells[name] for name in slow}, end)
            confirmed = slower(again, recorded)
            ratios |= again
    for name, ratio in ratios.items():
        print(described(f"{name} / {cells[name].floor}", ratio, recorded.get(name)))
    if len(ratios) < len(cells):
        print(f"not measured in time: {', '.join(cells.keys() - ratios.keys())}")
    write_numbers(options.json, {"ratios": ratios})
    if options.record:
        write_numbers(RECORD, {"ratios": ratios})
    if confirmed:
        raise UserError(
            f"{', '.join(confirmed)}: more than {MOST:g} times the recorded ratio. If the work "
            "has grown on purpose, record it with `python -m benchmarks floors --record`."
        )


def read_record(path: Path = RECORD) -> dict[str, float]:
    """Return the recorded ratios, none without a file."""
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    print(f"recorded: {machine_of(found)}, commit {short_commit(found)}")
    return {name: float(ratio) for name, ratio in found["ratios"].items()}


def measured(cells: Mapping[str, Cell], end: float = math.inf) -> dict[str, float]:
    """Return the ratio of each cell to its floor: of the medians of all rounds.

    Args:
        cells: What is measured.
        end: Time of ``time.monotonic`` at which nothing further is measured.
    """
    works = all_floors({cell.floor for cell in cells.values()})
    works |= {name: cell.cpu_seconds for name, cell in cells.items()}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for name, work in list(works.items()) * ROUNDS:
        if time.monotonic() < end:
            seconds[name].append(work())
    medians = {
        name: statistics.median(times) for name, times in seconds.items() if times
    }
    return {
        name: medians[name] / medians[cell.floor]
        for name, cell in cells.items()
        if name in medians
    }


def slower(ratios: Mapping[str, float], recorded: Mapping[str, float]) -> list[str]:
    """Return the names of ratios that are much worse than the recorded ones."""
    return [
        name for name, now in ratios.items() if now > MOST * recorded.get(name, now)
    ]


def described(name: str, ratio: float, recorded: float | None) -> str:
    """Return a line with the ratio, and how it compares with the recorded one."""
    line = f"{name:<46} {ratio:8.2f}"
    if recorded is None:
        return line
    return f"{line}   recorded {recorded:8.2f}: {ratio / recorded:.2f} times"


def all_floors(names: Iterable[str]) -> dict[str, Callable[[], float]]:
    """Return functions that measure floors."""
    table = torch.randn(768, 768, generator=torch.Generator().manual_seed(0))
    numbers = np.ones(8_000_000)
    known = {
        IMPORT: partial(process_seconds, [sys.executable, "-c", "import torch"]),
        PRODUCT: partial(cpu_seconds, partial(torch.mm, table, table)),
        READING: partial(cpu_seconds, numbers.sum),
    }
    return {name: known[name] for name in known if name in set(names)}


def commands_in(folder: Path) -> dict[str, Cell]:
    """Return commands of emea; ``explain``, ``predict`` and ``show`` read the run of the first.

    Args:
        folder: An empty folder for their files.
    """
    sides = zip(("source.nt", "target.nt"), NUM_SMALL, strict=True)
    small = [str(write_names(folder / name, number)) for name, number in sides]
    run = str(folder / "small")
    readme = [str(EXAMPLES / name) for name in ("atlas.nt", "karte.ttl")]
    seeds = ["--links", str(EXAMPLES / "seeds.tsv"), "--out", str(folder / "readme")]
    entity = "http://source.nt.example.org/7"
    arguments = {
        "emea align without links": ["align", *small, "--out", run],
        "emea align of the README": ["align", *readme, *seeds],
        "emea explain": ["explain", run, "--entity", entity],
        "emea predict": ["predict", run, "--threshold=0.5", f"--out={folder / 'sure'}"],
        "emea show": ["show", run, "--no-open"],
    }
    start = [sys.executable, "-m", "emea"]
    return {
        name: Cell(partial(process_seconds, [*start, *given]), IMPORT)
        for name, given in arguments.items()
    }


def write_names(path: Path, num_entities: int) -> Path:
    """Write a graph of entities with names, years and streets; a third differ by side."""
    near = np.random.default_rng(num_entities)
    words = [start + end for start in SYLLABLES for end in ("ano", "ette", "mar")]
    host = f"http://{path.name}.example.org"
    lines = []
    for number in range(num_entities):
        seed = number if number % 3 else number + num_entities
        drawn = np.random.default_rng(seed)
        name = f"{' '.join(drawn.choice(words, 3))} {drawn.integers(300)}"
        street = f"{drawn.choice(words)} street {drawn.integers(50)}"
        year = drawn.integers(1900, 2000)
        start = f"<{host}/{number}> <{host}"
        lines += [
            f'{start}/name> "{name}" .\n',
            f'{start}/year> "{year}" .\n',
            f'{start}/street> "{street}" .\n',
            f"{start}/near> <{host}/{near.integers(num_entities)}> .\n",
        ]
    path.write_text("".join(lines), encoding="utf-8")
    return path


SYLLABLES = ("bel", "cor", "dan", "fir", "gol")
"""Beginnings of the words of names."""


def process_seconds(command: Sequence[str]) -> float:
    """Return the CPU seconds of a process; its output is not shown.

    Raises:
        UserError: If it fails.
    """
    environment = {**with_this_package(), **ONE_THREAD}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise UserError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def parts_of_runs() -> dict[str, Cell]:
    """Return parts of runs on synthetic pairs."""
    usual = [f"data.num_entities={NUM_ENTITIES}", "tracking=none", "trainer=cpu"]
    usual += ["em=one_to_one"]
    light, rrea = (built_parts([*usual, f"model={one}"]) for one in ("lightea", "rrea"))
    pair = synthetic_pair(num_entities=NUM_ENTITIES)
    seeds = torch.from_numpy(pair.links[: NUM_ENTITIES // 10].copy())

    def paris() -> None:
        ParisReasoner(pair).align(seeds, None, lambda report: None)  # type: ignore[arg-type]

    works: dict[str, tuple[Callable[[], object], str]] = {
        "step of LightEA": (training_step(light, light.data.links), PRODUCT),
        "step of RREA": (training_step(rrea, rrea.data.links), PRODUCT),
        "search and E-step": (
            partial(light.em.between_fits, light.module, light.data),
            PRODUCT,
        ),
        "PARIS": (paris, READING),
    }
    for work, _ in works.values():  # the first call compiles loops
        work()
    return {
        name: Cell(partial(cpu_seconds, work), floor)
        for name, (work, floor) in works.items()
    }


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the mean CPU seconds of a call, repeated for a while."""
    start = time.process_time()
    number = 0
    while time.process_time() - start < LEAST_SECONDS or not number:
        work()
        number += 1
    return (time.process_time() - start) / number
