"""The examples in the help of each command work."""

import importlib
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from emea.cli import align
from emea.cli.main import main

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
SMALL = {
    "model": "lightea",
    "trainer": "cpu",
    "em.iterations": "1",
    "model.encoder.dim": "32",
    "model.encoder.output_dim": "32",
}
UNSUITED = {
    "--target-precision",  # needs validation links
    "--decoding",  # needs an encoder
    "--take-back",  # needs decisions
}
"""Arguments that a run without links cannot follow."""

ON_A_RUN = ("explain", "predict", "merge", "show", "suggest", "update")


def commands(text: str) -> list[list[str]]:
    return [
        shlex.split(line) for line in re.findall(r"^ +emea (.*)$", text, re.MULTILINE)
    ]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the files that the examples name."""
    for name in ("atlas.nt", "karte.ttl", "seeds.tsv", "books.csv", "library.csv"):
        shutil.copy(EXAMPLES / name, tmp_path / name)
    shutil.copy(EXAMPLES / "library.csv", tmp_path / "shop.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_examples() -> Iterator[tuple[str, list[str]]]:
    for name in ON_A_RUN:
        module = importlib.import_module(f"emea.cli.{name}")
        for words in commands(getattr(module, "EXAMPLES", "")):
            yield name, words


@pytest.mark.usefixtures("folder")
def test_align_without_links(capsys: pytest.CaptureFixture[str]) -> None:
    *_, shortest = commands(align.EXAMPLES)
    assert shortest == ["align", "atlas.nt", "karte.ttl"]
    assert main(shortest) == 0
    shown = capsys.readouterr().out
    assert (
        "http://atlas.example.org/place/Zagreb  =  http://karte.example.org/ort/Zagreb"
        in shown
    )


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("words", commands(align.EXAMPLES)[:-1], ids=" ".join)
def test_align_with_links(words: list[str]) -> None:
    given = {word.partition("=")[0] for word in words}
    quick = [f"{key}={value}" for key, value in SMALL.items() if key not in given]
    command, source, target, *others = words
    assert main([command, source, target, *quick, *others]) == 0


@pytest.mark.slow
def test_commands_on_a_run(folder: Path) -> None:
    shutil.copy(folder / "atlas.nt", folder / "new.nt")
    shutil.copy(folder / "karte.ttl", folder / "new.ttl")
    place = "http://atlas.example.org/place/", "http://karte.example.org/ort/"
    (folder / "links.tsv").write_text(f"{place[0]}Zagreb\t{place[1]}Zagreb\n")
    (folder / "rejected.tsv").write_text(f"{place[0]}Zagreb\t{place[1]}Rom\n")
    pair = {"source": f"{place[0]}Zagreb", "target": f"{place[1]}Zagreb"}
    (folder / "questions.jsonl").write_text(json.dumps({**pair, "answer": "yes"}))
    decided = "\t".join([*pair.values(), "accepted"])
    (folder / "decisions.tsv").write_text(f"source\ttarget\tdecision\n{decided}\n")
    assert main(["align", "atlas.nt", "karte.ttl", "--out", "RUN"]) == 0
    examples = list(run_examples())
    assert len(examples) >= 8
    for name, words in examples:
        further = [] if name != "show" or "--no-open" in words else ["--no-open"]
        if any(word in UNSUITED for word in words):
            continue
        assert main([*words, *further]) == 0, words
