"""One clustering of DBP15K's graphs: Chinese, Japanese, French, and the English sides of two pairs.

All pairs of DBP15K link to English, so entities of two other graphs are the same if they are linked
to the same English entity. Each pair of graphs gets a share of its links as labels, and PARIS
without literals aligns it, as the recipe in docs/clusters.md does.
"""

import random
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

import numpy as np

from emea.cli.main import main as emea

from .measure_several import Measured
from .people import joined

GRAPHS = {
    "zh": ("zh_en", 1),
    "ja": ("ja_en", 1),
    "en": ("zh_en", 2),
    "fr": ("fr_en", 1),
    "en2": ("fr_en", 2),
}
"""Folder and side of each graph; the first three are the problem of three graphs."""

SETTINGS = ("method=paris", "literals=none", "data.iri_names=false")


def rows_of(path: Path) -> list[list[str]]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines]


def concepts_of(data: Path, graph: str) -> dict[str, str]:
    """The English name of each entity of a graph that has one."""
    folder, side = GRAPHS[graph]
    names, english = (
        dict(rows_of(data / folder / f"ent_ids_{one}")) for one in (side, 2)
    )
    if side == 2:
        return {name: name for name in names.values()}
    links = rows_of(data / folder / "ref_ent_ids")
    return {names[one]: english[other] for one, other in links}


class MeasuredDBP15K(Measured):
    """Runs ``emea align`` on graphs of DBP15K.

    Args:
        data: The folder of DBP15K.
        num_graphs: The number of graphs.
        seed: The seed of the labels.
        folder: Where to write the graphs.
        share: The share of the links of each pair that are labels.
    """

    def __init__(
        self, data: Path, num_graphs: int, seed: int, folder: Path, share: float = 0.3
    ) -> None:
        self.names = list(GRAPHS)[:num_graphs]
        self.folder = folder / "out"
        self.ids: dict[tuple[str, str], int] = {}
        of_concept: dict[str, list[int]] = {}
        files = {}
        places: list[int] = []
        for place, graph in enumerate(self.names):
            one, side = GRAPHS[graph]
            own = dict(rows_of(data / one / f"ent_ids_{side}"))
            files[graph] = folder / f"{graph}.tsv"
            triples = (
                f"{own[head]}\t{relation}\t{own[tail]}\n"
                for head, relation, tail in rows_of(data / one / f"triples_{side}")
            )
            files[graph].write_text("".join(triples), encoding="utf-8")
            for name in own.values():
                self.ids[graph, name] = len(self.ids)
            places += [place] * len(own)
            for name, concept in concepts_of(data, graph).items():
                of_concept.setdefault(concept, []).append(self.ids[graph, name])
        self.places = np.array(places)
        self.all_true = joined(map(sorted, of_concept.values()))
        self.labels = self._align(files, random.Random(seed), share)
        self.true = self.all_true - self.labels

    def _align(
        self, files: dict[str, Path], rng: random.Random, share: float
    ) -> set[tuple[int, int]]:
        """Align each pair with its labels, then all graphs, and return the labels."""
        names = {number: key for key, number in self.ids.items()}
        drawn = [pair for pair in sorted(self.all_true) if rng.random() < share]
        of_pair: dict[tuple[str, str], list[str]] = {}
        for pair in drawn:
            (first, one), (second, other) = (names[end] for end in pair)
            of_pair.setdefault((first, second), []).append(f"{one}\t{other}\n")
        for both in combinations(self.names, 2):
            links = self.folder.parent / f"{'-'.join(both)}.tsv"
            links.write_text("".join(of_pair[both]), encoding="utf-8")
            out = self.folder / "pairs" / "-".join(both)
            own = [str(files[graph]) for graph in both]
            command = ["align", *own, *SETTINGS, "--links", str(links)]
            assert emea([*command, "--out", str(out)]) == 0
        everything = [str(file) for file in files.values()]
        assert emea(["align", *everything, "--out", str(self.folder)]) == 0
        return set(drawn)

    def entity(self, graph: str, name: str) -> int:
        return self.ids[graph, name]

    def judged(self, pairs: Iterable[tuple[int, int]]) -> set[tuple[int, int]]:
        """Pairs that are no labels, of entities that have a counterpart in this pair of graphs."""
        has = {(one, self.places[other]) for one, other in self.all_true}
        has |= {(other, self.places[one]) for one, other in self.all_true}
        return {
            (one, other)
            for one, other in pairs
            if (one, other) not in self.labels
            and ((one, self.places[other]) in has or (other, self.places[one]) in has)
        }
