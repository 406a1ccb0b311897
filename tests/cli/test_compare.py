"""``emea compare``, as a person uses it."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from emea.cli.main import main
from emea.data.sources.synthetic import synthetic_pair
from emea.data.split import random_split
from emea.record.run_folder import links_checksum

from ..written_runs import CONFIG, write_run_folder

DATA = {"name": "synthetic", "_target_": "emea.data.sources.synthetic.synthetic_pair"}
DATA |= {"num_entities": 100, "seed": 1}
SPLIT = {
    "name": "random",
    "_target_": "emea.data.split.random_split",
    "_partial_": True,
}
SPLIT |= {"ratio": 0.2, "seed": 0, "num_validation": 4, "validation_from": "rest"}


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs on the same links, and one on others."""
    monkeypatch.chdir(tmp_path)
    pair = synthetic_pair(num_entities=100, seed=1)
    for name, seed, model in (("a", 0, "rrea"), ("b", 0, "lightea"), ("c", 1, "rrea")):
        links = random_split(pair, 0.2, seed, 4).test
        ranks = [1.0] * len(links)
        ranks[0] = 3 if name == "a" else 1
        ranks[1] = 2.5 if name == "b" else 1
        config: dict[str, Any] = CONFIG | {
            "data": DATA,
            "split": {**SPLIT, "seed": seed},
        }
        config |= {"model": {"name": model}, "method": {"uses": []}}
        tags = {"commit": "c" * 40, "dirty": "false", "data_checksum": pair.checksum()}
        folder = write_run_folder(
            tmp_path / name, name * 32, config, links=links, tags=tags
        )
        checksum, final = links_checksum(links), np.float32(ranks)
        np.savez(
            folder / "ranks.npz",
            links=links,
            links_checksum=checksum,
            final_in_pool=final,
        )


def test_two_folders(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "a", "b", "--html", "out/c.html"]) == 0
    text = capsys.readouterr().out
    assert "model.name" in text and "lightea" in text
    assert "links won 1, lost 1" in text
    assert "1 won" in Path("out/c.html").read_text()


def test_links_won_and_lost_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(
            [
                "compare",
                "a",
                "b",
                "--examples",
                "3",
                "--csv",
                "c.csv",
                "--html",
                "c.html",
            ]
        )
        == 0
    )
    pair = synthetic_pair(num_entities=100, seed=1)
    (won, lost) = random_split(pair, 0.2, 0, 4).test[:2].tolist()
    names = pair.source.all_entity_names, pair.target.all_entity_names
    text = capsys.readouterr().out
    assert f"won: {names[0][won[0]]} = {names[1][won[1]]} (rank 3 -> 1)" in text
    assert f"lost: {names[0][lost[0]]} = {names[1][lost[1]]} (rank 1 -> 2.5)" in text
    with open("c.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    found = {(row["section"], row["name"], row["run"]): row["value"] for row in rows}
    assert found["setting", "model.name", "b"] == "lightea"
    assert found["test", "won", "b"] == "1"
    assert "(rank 3 -> 1)" in found["test", "won link", "b"]
    assert "rank 3 -&gt; 1" in Path("c.html").read_text()


def test_without_the_data_no_links_are_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    config = yaml.safe_load(Path("a/config.yaml").read_text())
    config["data"]["num_entities"] = 90  # other data than the run's
    Path("a/config.yaml").write_text(yaml.safe_dump(config))
    assert main(["compare", "a", "b", "--examples", "3"]) == 0
    assert (
        "no links are named: the data of synthetic changed" in capsys.readouterr().out
    )


def test_other_links_are_not_paired(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "a", "b", "c"]) == 0
    text = capsys.readouterr().out
    assert "b: " in text and "links won 1" in text
    assert (
        "c: not paired with the first run, because they have no ranks of the same test links"
        in text
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a"], "at least two runs"),
        (["a", "nowhere"], "nowhere is not a run's folder"),
        (["a", "x/y"], "x/y is not a run's folder"),
    ],
)
def test_mistakes_are_one_sentence(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *arguments]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error and error.count("\n") == 1
