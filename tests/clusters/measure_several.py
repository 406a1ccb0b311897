"""Measures clusters of several tables: ``python -m tests.clusters.measure_several``.

It reads EMEA_DATA and prints how much one clustering gains over the runs of all pairs.
"""

import csv
import os
import random
import sys
import tempfile
from contextlib import redirect_stdout
from itertools import product
from pathlib import Path

import numpy as np

from emea.answer.merging import read_matches
from emea.cli.main import main as emea
from emea.clusters.several import closed_share

from .measure import persons
from .people import Rows, f1, joined, mistyped, write_table

Pairs = set[tuple[int, int]]
KEPT = 0.7
NOISE = {"light": (0.3, 0.2), "heavy": (0.5, 0.45)}
"""Shares of the values that are mistyped and that are missing."""


def some_of(
    rows: Rows, rng: random.Random, noise: str = "light"
) -> tuple[Rows, list[int]]:
    """Part of the rows in random order, with mistyped and missing values, and who they are."""
    typos, missing = NOISE[noise]
    chosen = [person for person in range(len(rows)) if rng.random() < KEPT]
    rng.shuffle(chosen)
    found = []
    for person in chosen:
        kept = {key: t for key, t in rows[person].items() if rng.random() >= missing}
        found.append(
            {
                key: mistyped(text, rng) if rng.random() < typos else text
                for key, text in kept.items()
            }
        )
    return found, chosen


class Measured:
    """Runs ``emea align`` on several tables of people.

    Args:
        rows: The people.
        num_graphs: The number of tables.
        seed: The seed of their rows.
        folder: Where to write them.
        noise: How many values are mistyped and missing.
    """

    def __init__(
        self,
        rows: Rows,
        num_graphs: int,
        seed: int,
        folder: Path,
        noise: str = "light",
    ) -> None:
        rng = random.Random(seed)
        tables = [some_of(rows, rng, noise) for _ in range(num_graphs)]
        self.names = [f"g{number}" for number in range(num_graphs)]
        files = []
        for name, (table, _) in zip(self.names, tables, strict=True):
            files.append(str(write_table(folder / f"{name}.csv", table)))
        self.starts = np.cumsum([0, *(len(who) for _, who in tables)]).tolist()
        self.places = np.repeat(np.arange(num_graphs), np.diff(self.starts))
        people_of: dict[int, list[int]] = {}
        for start, (_, who) in zip(self.starts, tables, strict=False):
            for row, person in enumerate(who):
                people_of.setdefault(person, []).append(start + row)
        self.true = joined(people_of.values())
        self.folder = folder / "out"
        assert emea(["align", *files, "--out", str(self.folder)]) == 0

    def entity(self, graph: str, name: str) -> int:
        place = self.starts[self.names.index(graph)]
        return int(place + int(name.removeprefix("row")))

    def alone(self) -> Pairs:
        """The answers of the runs of all pairs."""
        found = set()
        for run in sorted((self.folder / "pairs").iterdir()):
            first, second = run.name.split("-")
            for one, other, _ in read_matches(run / "alignment.tsv"):
                found.add((self.entity(first, one), self.entity(second, other)))
        return found

    def together(self) -> Pairs:
        """The pairs of the clusters."""
        members: dict[str, list[int]] = {}
        with (self.folder / "clusters.tsv").open(newline="") as file:
            for row in csv.DictReader(file, delimiter="\t"):
                entity = self.entity(row["graph"], row["entity"])
                members.setdefault(row["cluster"], []).append(entity)
        return joined(members.values())

    def closed(self, pairs: Pairs) -> float:
        """The share of the implied pairs that are found."""
        return closed_share(np.array(sorted(pairs)), self.places, len(self.places))


def main() -> None:
    """Print a table with a line for each number of graphs and seed."""
    path = Path(os.environ["EMEA_DATA"]) / "oaei2010" / "persons1" / "source.nt"
    rows = persons(path)
    print(
        "| noise | graphs | seed | F1 alone | F1 together | closed alone | together |"
    )
    print("|---|---|---|---|---|---|---|")
    for noise, num_graphs, seed in product(sys.argv[1:] or NOISE, (3, 5), (1, 2, 3)):
        with tempfile.TemporaryDirectory() as folder:
            with redirect_stdout(sys.stderr):
                one = Measured(rows, num_graphs, seed, Path(folder), noise)
            both = one.alone(), one.together()
        scores = " | ".join(f"{f1(pairs, one.true):.3f}" for pairs in both)
        closed = " | ".join(f"{one.closed(pairs):.3f}" for pairs in both)
        print(f"| {noise} | {num_graphs} | {seed} | {scores} | {closed} |", flush=True)


if __name__ == "__main__":
    main()
