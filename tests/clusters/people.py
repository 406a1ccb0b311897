"""Tables of people with duplicates: typos, missing values and several copies."""

import csv
import random
from collections.abc import Collection, Iterable
from pathlib import Path

from emea.data.arrays import IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.sources.own_files import read_own_graph
from emea.data.sources.settings import OwnFilesSettings

Rows = list[dict[str, str]]

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
SYLLABLES = [
    "ka",
    "lo",
    "mi",
    "ren",
    "tas",
    "vo",
    "qui",
    "ze",
    "dro",
    "pel",
    "nar",
    "sho",
]


def people(number: int, seed: int) -> Rows:
    """Different people; towns, ages and given names are shared by many."""
    rng = random.Random(seed)

    def name(least: int, most: int) -> str:
        return "".join(rng.choices(SYLLABLES, k=rng.randint(least, most)))

    given = [name(1, 2) for _ in range(40)]
    family = [name(2, 3) for _ in range(number // 2)]
    towns = [name(2, 4) for _ in range(20)]
    return [
        {
            "given": rng.choice(given),
            "family": rng.choice(family),
            "town": rng.choice(towns),
            "street": f"{rng.randint(1, 99)} {name(2, 3)} street",
            "phone": f"0{rng.randint(10**7, 10**8 - 1)}",
            "born": f"{rng.randint(1930, 2005)}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}",
        }
        for _ in range(number)
    ]


def mistyped(text: str, rng: random.Random) -> str:
    """A text with one wrong, missing, further or swapped character."""
    place = rng.randrange(len(text))
    start, rest = text[:place], text[place:]
    further = rng.choice(LETTERS)
    kind = rng.randrange(4)
    if kind == 0:
        return start + rest[1:]
    if kind == 1:
        return start + further + rest
    if kind == 2:
        return start + further + rest[1:]
    return start + rest[:2][::-1] + rest[2:]


def with_duplicates(
    rows: Rows,
    seed: int,
    share: float = 0.4,
    typos: float = 0.25,
    missing: float = 0.12,
) -> tuple[Rows, list[int]]:
    """Rows in random order, of which a share has up to three copies, and who each row is."""
    rng = random.Random(seed)
    found = [(row, person) for person, row in enumerate(rows)]
    for person, row in enumerate(rows):
        num_copies = rng.choice([1, 1, 1, 2, 2, 3]) if rng.random() < share else 0
        for _ in range(num_copies):
            kept = {key: text for key, text in row.items() if rng.random() >= missing}
            copy = {
                key: mistyped(text, rng) if rng.random() < typos else text
                for key, text in kept.items()
            }
            found.append((copy, person))
    rng.shuffle(found)
    return [row for row, _ in found], [person for _, person in found]


def write_table(path: Path, rows: Rows) -> Path:
    """Write rows as a CSV file, with the ids row0, row1, ..."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *columns])
        for number, row in enumerate(rows):
            cells = [row.get(column, "") for column in columns]
            writer.writerow([f"row{number}", *cells])
    return path


def read_table(path: Path) -> KnowledgeGraph:
    settings = OwnFilesSettings(keep_literals=True, keep_isolated=True)
    return read_own_graph(path, settings)[0]


def true_pairs(graph: KnowledgeGraph, who: list[int]) -> set[tuple[int, int]]:
    """The pairs of entities that are the same person."""
    by_person: dict[int, list[int]] = {}
    for entity, name in enumerate(graph.all_entity_names):
        by_person.setdefault(who[int(name.removeprefix("row"))], []).append(entity)
    return joined(by_person.values())


def joined(clusters: Iterable[Collection[int]]) -> set[tuple[int, int]]:
    """The pairs of members of each cluster."""
    return {
        (first, second)
        for members in clusters
        for first in members
        for second in members
        if first < second
    }


def pairs_of(clusters: IntArray) -> set[tuple[int, int]]:
    """The pairs of entities with the same cluster."""
    members: dict[int, list[int]] = {}
    for entity, cluster in enumerate(clusters.tolist()):
        members.setdefault(cluster, []).append(entity)
    return joined(members.values())


def f1(found: set[tuple[int, int]], true: set[tuple[int, int]]) -> float:
    return 2 * len(found & true) / (len(found) + len(true))
