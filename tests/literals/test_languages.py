"""Equal words in two languages are candidates, with less weight than words in one language."""

import csv
from pathlib import Path

import pytest

from emea.cli.main import main

WORDS = ("Hand", "Finger", "Arm", "Person", "Museum", "Professor", "Student", "Atlas")
OWL = "http://www.w3.org/2002/07/owl#"


def write(folder: Path, side: str, language: str) -> str:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    terms = (
        f'<http://{side}/{side}00{n:03}> a <{OWL}Class> ; {label} "{word}"@{language} .\n'
        for n, word in enumerate(WORDS)
    )
    path = folder / f"{side}.ttl"
    path.write_text("".join(terms))
    return str(path)


def probabilities(folder: Path, language: str) -> dict[str, float]:
    files = [write(folder, "a", "de"), write(folder, "b", language)]
    assert main(["align", *files, "--out", str(folder / "out")]) == 0
    with (folder / "out" / "alignment.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert all(row["source"][-3:] == row["target"][-3:] for row in rows)
    return {row["source"]: float(row["probability"]) for row in rows}


@pytest.mark.slow
def test_equal_words_in_two_languages(tmp_path: Path) -> None:
    folders = tmp_path / "one", tmp_path / "two"
    for folder in folders:
        folder.mkdir()
    same = probabilities(folders[0], "de")
    other = probabilities(folders[1], "en")
    assert len(same) == len(other) == len(WORDS)
    assert all(0.5 <= other[name] < same[name] for name in same)
