"""Test links change no answer that comes from values: tables without links, and dictionaries."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from emea.cli.main import main as emea

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
GRAPHS = [str(EXAMPLES / "atlas.nt"), str(EXAMPLES / "karte.ttl")]
WORDS = ["amber", "birch", "cedar", "dune", "ember", "fjord", "glade", "heath", "isle"]
NUM_ROWS = 120
NUM_SHARED = 80
"""Rows of each table that have a counterpart."""

TRANSLATED = {
    "Deutsch": "German",
    "Rumänisch": "Romanian",
    "Tschechisch": "Czech",
    "Ungarisch": "Hungarian",
    "Dänemark": "Denmark",
}

Links = list[tuple[str, str]]


def tables(folder: Path) -> tuple[list[str], Links]:
    """Write two tables with one word, one year and one city of each row changed in places."""
    rng = np.random.default_rng(5)
    rows = [
        [
            " ".join(rng.choice(WORDS, 3, replace=False)) + f" {number:03}",
            str(1900 + int(rng.integers(100))),
            str(rng.choice(WORDS[:6])),
        ]
        for number in range(2 * NUM_ROWS - NUM_SHARED)
    ]
    sides = {"a": rows[:NUM_ROWS], "b": rows[NUM_ROWS - NUM_SHARED :]}
    for name, chosen in sides.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "title", "year", "city"])
            for number, (title, year, city) in enumerate(chosen):
                if rng.random() < 0.3:
                    title = title.replace(" ", "  ").upper()
                if rng.random() < 0.1:
                    year = str(int(year) + 1)
                writer.writerow([f"{name}{number}", title, year, city])
    links = [
        (f"a{NUM_ROWS - NUM_SHARED + number}", f"b{number}")
        for number in range(NUM_SHARED)
    ]
    return [str(folder / "a.csv"), str(folder / "b.csv")], links


def answers(
    folder: Path, graphs: Sequence[str], links: Links, settings: Sequence[str]
) -> list[bytes]:
    """Align with true, moved and few test links, and return all files of answers of each run."""
    sources, targets = zip(*links, strict=True)
    changes = {
        "true": links,
        "moved": list(zip(sources, targets[1:] + targets[:1], strict=True)),
        "few": links[:1],
    }
    found = []
    for name, changed in changes.items():
        file = folder / f"{name}.tsv"
        rows = [("source", "target"), *changed]
        file.write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
        run = folder / name
        tested = ["--test-links", str(file), "--out", str(run)]
        assert emea(["align", *graphs, *tested, *settings]) == 0
        files = sorted(run.glob("*.tsv"))
        assert {"alignment.tsv", "unmatched.tsv"} <= {one.name for one in files}
        found.append(b"".join(one.read_bytes() for one in files))
    return found


@pytest.mark.slow
def test_tables_that_decoys_judge(tmp_path: Path) -> None:
    graphs, links = tables(tmp_path)
    found = answers(tmp_path, graphs, links, [])
    assert found[1:] == found[:1] * 2
    metrics = json.loads((tmp_path / "true" / "metrics.json").read_text())
    assert metrics["decoys"]  # the model of decoys gave the probabilities
    assert metrics["sources"]["f1"] > 0.7


@pytest.mark.slow
def test_tables_with_a_target_precision(tmp_path: Path) -> None:
    graphs, links = tables(tmp_path)
    found = answers(tmp_path, graphs, links, ["export.target_precision=0.9"])
    assert found[1:] == found[:1] * 2


@pytest.mark.slow
@pytest.mark.parametrize("method", ["paris", "emea"])
def test_values_that_a_dictionary_translates(method: str, tmp_path: Path) -> None:
    dictionary = tmp_path / "words.tsv"
    lines = [f"{word}\t{other}\n" for word, other in TRANSLATED.items()]
    dictionary.write_text("".join(lines), encoding="utf-8")
    rows = (EXAMPLES / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]
    links = [(one, other) for one, other in (row.split("\t") for row in rows)]
    chosen = {
        "paris": ["method=paris"],
        "emea": ["model=lightea", "model.encoder.dim=64", "em.iterations=1"],
    }[method]
    settings = [*chosen, "literals=similar", "data.iri_names=true"]
    settings += ["--links", str(EXAMPLES / "seeds.tsv")]
    place = tmp_path / "with"
    place.mkdir()
    translating = [*settings, f"literals.dictionary={dictionary}"]
    found = answers(place, GRAPHS, links, translating)
    assert found[1:] == found[:1] * 2
    without = tmp_path / "without"
    without.mkdir()
    assert answers(without, GRAPHS, links, settings)[0] != found[0]
