"""Pairs of OAEI 2010: small files, and the real ones without any link."""

from collections.abc import Callable
from pathlib import Path

import pytest

from emea.cli.main import main
from emea.config.composition import composed
from emea.data.sources.oaei import read_oaei
from emea.run.job import run_job

NAME = "http://xmlns.com/foaf/0.1/name"
PEOPLE = ("Ann", "Ben", "Cleo", "Dora")


def write_catalogues(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for file, side in (("source.nt", "a"), ("target.nt", "b")):
        lines = [
            f'<http://{side}/{n}> <{NAME}> "{name}" .\n'
            for n, name in enumerate(PEOPLE)
        ]
        lines += [
            f"<http://{side}/{n}> <http://{side}/knows> <http://{side}/0> ."
            for n in (1, 2)
        ]
        (folder / file).write_text("".join(line.rstrip("\n") + "\n" for line in lines))
    (folder / "links.tsv").write_text(
        "".join(f"http://a/{n}\thttp://b/{n}\n" for n in range(4))
    )
    return folder


def test_catalogues_keep_literals_and_all_links(tmp_path: Path) -> None:
    pair = read_oaei(write_catalogues(tmp_path / "people"), keep_literals=True)
    assert (pair.name, len(pair.links), pair.official) == ("people", 4, None)
    assert pair.source.attributes is not None and len(pair.source.attributes) == 4
    names = [
        (pair.source.entity_name(a), pair.target.entity_name(b)) for a, b in pair.links
    ]
    assert sorted(names) == [(f"http://a/{n}", f"http://b/{n}") for n in range(4)]


def test_an_option_reads_literals_and_gives_no_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMEA_DATA", str(tmp_path))
    write_catalogues(tmp_path / "oaei2010" / "persons1")
    config = composed(["data=oaei_persons1", "method=paris", "tracking=none"])
    assert (config.split.name, config.literals.name) == ("none", "similar")
    metrics = run_job(config, tmp_path / "run").metrics
    assert (metrics["num_links"]["train"], metrics["num_links"]["test"]) == (0, 4)
    assert metrics["export"]["test"]["recall"] == 1
    random = composed(["data=oaei_persons1", "split=random", "literals=equal"])
    assert (random.split.name, random.literals.name) == ("random", "equal")


def test_missing_files_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EMEA_DATA", str(tmp_path))
    assert main(["data", "oaei_restaurants"]) == 1
    printed = capsys.readouterr().err
    assert (
        f"The folder {tmp_path / 'oaei2010' / 'restaurants'} does not exist." in printed
    )
    assert "dice-group/LIMES" in printed and "links.tsv" in printed


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "num_links", "least"), [("restaurants", 89, 0.95), ("persons1", 500, 0.99)]
)
def test_real_catalogues_are_matched_without_links(
    name: str,
    num_links: int,
    least: float,
    real_folder: Callable[[str], Path],
    tmp_path: Path,
) -> None:
    folder = real_folder(f"oaei2010/{name}")
    chosen = [
        f"data=oaei_{name}",
        f"data.folder={folder}",
        "method=paris",
        "tracking=none",
    ]
    result = run_job(composed(chosen), tmp_path)
    links = result.metrics["num_links"]
    assert links == {"train": 0, "validation": 0, "test": num_links}
    found = result.metrics["export"]["test"]
    precision, recall = found["precision"], found["recall"]
    assert 2 * precision * recall / (precision + recall) >= least
    equal = {
        row.source.rpartition("#")[2] for row in result.schema.relations if row.mapping
    }
    assert {"has_address", "street"} <= equal
