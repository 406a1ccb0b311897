"""``emea compare``, as a person uses it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from emea.cli.main import main
from emea.data.sources.synthetic import synthetic_pair
from emea.data.split import random_split
from emea.record.run_folder import links_checksum

from ..usual import usual
from ..written_runs import CONFIG, write_run_folder

DATA = {"name": "synthetic", "_target_": "emea.data.sources.synthetic.synthetic_pair"}
DATA |= {"num_entities": 100, "seed": 1}
SPLIT = {"name": "random", "_target_": "emea.data.split.random_split", "_partial_": True}
SPLIT |= {"ratio": 0.2, "seed": 0, "num_validation": 4, "validation_from": "rest"}


@pytest.fixture(autouse=True)
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs on the same links, and one on others."""
    monkeypatch.chdir(tmp_path)
    pair = synthetic_pair(num_entities=100, seed=1)
    for name, seed, model in (("a", 0, "rrea"), ("b", 0, "lightea"), ("c", 1, "rrea")):
        links = usual(random_split, pair, 0.2, seed, 4).test
        ranks = [1.0] * len(links)
        ranks[0] = 3 if name == "a" else 1
        ranks[1] = 2.5 if name == "b" else 1
        config: dict[str, Any] = CONFIG | {"data": DATA, "split": {**SPLIT, "seed": seed}}
        config |= {"model": {"name": model}, "method": {"uses": []}}
        tags = {"commit": "c" * 40, "dirty": "false", "data_checksum": pair.checksum()}
        folder = write_run_folder(tmp_path / name, name * 32, config, links=links, tags=tags)
        checksum, final = links_checksum(links), np.float32(ranks)
        np.savez(folder / "ranks.npz", links=links, links_checksum=checksum, final_in_pool=final)


def test_two_folders(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "a", "b", "--html", "out/c.html"]) == 0
    text = capsys.readouterr().out
    assert "model.name" in text and "lightea" in text
    assert "links won 1, lost 1" in text
    assert "1 won" in Path("out/c.html").read_text()


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
