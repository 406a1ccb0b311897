"""The reliability diagram of a run's folder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from emea.cli.main import main as emea
from emea.results.calibration import title

BINS = [
    {"min_prob": 0.2, "max_prob": 0.3, "mean_prob": 0.25, "accuracy": 0.5, "num_entities": 30},
    {"min_prob": 0.9, "max_prob": 1.0, "mean_prob": 0.97, "accuracy": 0.8, "num_entities": 1200},
]
METRICS: dict[str, Any] = {
    "method": "emea",
    "model": "rrea",
    "em": "dual",
    "data": "dbp15k_zh",
    "ratio": 0.05,
    "protocol": "strict",
    "answer": {"decoder": "mutual"},
    "calibration": {"ece": 0.1721, "bins": BINS, "num_entities": 1230, "num_unmatched": 17},
}


def main(arguments: Sequence[str]) -> int:
    return emea(["report", "--calibration", *arguments])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "metrics.json").write_text(json.dumps(METRICS))
    return tmp_path


def test_draws_what_the_metrics_say(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(folder)]) == 0
    paths = [folder / "reliability.png", folder / "reliability.svg"]
    assert capsys.readouterr().out.splitlines() == list(map(str, paths))
    assert paths[0].read_bytes().startswith(b"\x89PNG")
    drawn = paths[1].read_text()
    words = ("protocol=strict: saw no test links", "decoding=mutual", "error 0.172", "probability")
    for text in (*words, "1,230 test links, 17 without an answer not counted", "accuracy"):
        assert text in drawn, text


def test_the_title_does_not_hide_what_was_seen() -> None:
    assert "USED TEST LINKS" in title(METRICS | {"protocol": "released"})
    alone = METRICS | {"model": "none", "em": "none", "ratio": None, "answer": {"decoder": "none"}}
    assert title(alone).splitlines()[0] == "emea on dbp15k_zh, official split"


@pytest.mark.parametrize("content", [None, "{", "{}", '{"calibration": {"bins": []}}'])
def test_a_folder_without_calibration_is_one_sentence(
    content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (tmp_path / "metrics.json").write_text(content)
    assert main([str(tmp_path)]) == 1
    assert str(tmp_path) in capsys.readouterr().err
    assert not (tmp_path / "reliability.png").exists()
