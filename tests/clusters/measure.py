"""Measures duplicates of public tables: ``python -m tests.clusters.measure`` (reads EMEA_DATA)."""

import csv
import gzip
import io
import os
import tempfile
from pathlib import Path

from emea.clusters.duplicates import find_duplicates
from emea.clusters.own_records import own_records

from .people import (
    Rows,
    f1,
    pairs_of,
    read_table,
    true_pairs,
    with_duplicates,
    write_table,
)

SEEDS = (1, 2, 3)
TABLES = {
    "DBLP": "dblp_acm/DBLP2.csv.gz",
    "ACM": "dblp_acm/ACM.csv.gz",
    "IMDB": "imdb_tmdb/a.csv.gz",
    "films of remakes": "remakes/a.csv.gz",
    "Amazon products": "amazon_google/a.csv.gz",
    "Google products": "amazon_google/b.csv.gz",
}


def held(path: Path) -> dict[str, dict[str, str]]:
    """The values of each subject of an N-Triples file of OAEI 2010."""
    found: dict[str, dict[str, str]] = {}
    for line in path.read_text().splitlines():
        subject, name, value = line.removesuffix(" .").split(" ", 2)
        key = name.strip("<>").split("#")[1]
        found.setdefault(subject.strip("<>"), {})[key] = value.strip('"<>')
    return found


def persons(path: Path) -> Rows:
    """The people of OAEI 2010 with their addresses, as the rows of a table."""
    graph = held(path)
    found = []
    for row in graph.values():
        if "has_address" in row:
            address = graph[row["has_address"]]
            suburb = graph.get(address.get("is_in_suburb", ""), {})
            state = graph.get(suburb.get("is_in_state", ""), {})
            cells = {**row, **address, "suburb": suburb.get("name", "")}
            cells["state"] = state.get("name", "")
            for key in ("type", "has_address", "is_in_suburb"):
                cells.pop(key, None)
            found.append({key: text for key, text in cells.items() if text})
    return found


def table(path: Path) -> Rows:
    """The rows of a CSV file, without its first column, which has the ids."""
    text = gzip.decompress(path.read_bytes()).decode("utf-8", errors="replace")
    found = []
    for row in csv.DictReader(io.StringIO(text)):
        row.pop(next(iter(row)))
        found.append({key: value for key, value in row.items() if value})
    return found


def measured(rows: Rows, who: list[int]) -> tuple[int, int, int, int, float]:
    """Entities, true pairs, pairs found, right ones, and F1."""
    with tempfile.TemporaryDirectory() as folder:
        graph = read_table(write_table(Path(folder) / "table.csv", rows))
    true = true_pairs(graph, who)
    found = pairs_of(find_duplicates(own_records(graph, "table.csv")).clusters)
    score = f1(found, true) if true else 0.0
    return graph.num_entities, len(true), len(found), len(found & true), score


def main() -> None:
    """Print a table with a line for each data set and seed."""
    data = Path(os.environ["EMEA_DATA"])
    tables = {
        f"persons1 {side}": persons(data / "oaei2010" / "persons1" / f"{side}.nt")
        for side in ("source", "target")
    }
    tables |= {name: table(data / "tables" / file) for name, file in TABLES.items()}
    print("| table | seed | rows | true pairs | found | precision | recall | F1 |")
    print("|---|---|---|---|---|---|---|---|")
    for name, rows in tables.items():
        size, _, found, _, _ = measured(rows, list(range(len(rows))))
        print(
            f"| {name} | without | {size:,} | 0 | {found} ({found / size:.2%}) | | | |"
        )
        for seed in SEEDS:
            size, true, found, right, score = measured(*with_duplicates(rows, seed))
            print(
                f"| {name} | {seed} | {size:,} | {true:,} | {found:,} | "
                f"{right / max(1, found):.3f} | {right / true:.3f} | {score:.3f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
