"""Answers of whole runs: thresholds, files, and the same from a finished run."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from omegaconf import DictConfig

from emea.answer.exporting import FORMATS
from emea.answer.schema import SCHEMA_FORMATS
from emea.answer.settings import ExportSettings
from emea.config.composition import option_names
from emea.data.protocol import Released
from emea.errors import ConfigError
from emea.record.run_folder import finite
from emea.run.finished_run import FinishedRun, load_run
from emea.run.job import run_job
from emea.run.predicting import NUMBERS_FILE, predict
from emea.run.result_table import answered_line

from ..small_runs import tiny_config_of

Configs = Callable[..., DictConfig]

ALL = "export.formats=[nt,sssom,jsonl,alignment]"
QUICK = ("em=none", "rule=none")
METHODS = {
    "paper": ("em.iterations=1",),
    "dual": ("em=dual", "em.iterations=1"),
    "dual without iterations": ("em=dual", "em.iterations=0"),
    "none": QUICK,
    "none, one to one": (*QUICK, "decoding=hungarian"),
    "paris": ("method=paris",),
    "prase": ("method=prase", "model.initial_epochs=5"),
    "prase, one to one": (
        "method=prase",
        "model.initial_epochs=5",
        "decoding=hungarian",
    ),
    "released": ("protocol=released", "rule=avoid_conflict", "em.iterations=1"),
}
FILES = [
    file for files in (*FORMATS.values(), *SCHEMA_FORMATS.values()) for file in files
]


def contents(folder: Path) -> dict[str, bytes]:
    return {file: (folder / file).read_bytes() for file in FILES}


def objects(folder: Path) -> list[dict[str, Any]]:
    return [
        json.loads(line) for line in (folder / "alignment.jsonl").open(encoding="utf-8")
    ]


def written(folder: Path) -> dict[str, Any]:
    numbers: dict[str, Any] = json.loads((folder / "metrics.json").read_text())[
        "export"
    ]
    return numbers


@pytest.mark.parametrize("method", METHODS)
def test_a_finished_run_predicts_what_it_wrote(
    method: str, tiny_config: Configs, tmp_path: Path
) -> None:
    wanted = (ALL, "export.top_k=3", "export.target_precision=0.4")
    run_job(tiny_config(*METHODS[method], *wanted), tmp_path)
    run = load_run(tmp_path)
    numbers, files = predict(run, tmp_path / "again", run.settings.own.export)
    assert contents(tmp_path / "again") == contents(tmp_path)
    assert finite(numbers) == written(tmp_path)
    assert {path.name for path in files} == {*FILES, NUMBERS_FILE}


def test_test_links_that_were_taken_as_labels_are_no_right_answers(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Released, "num_unseen_links", 15)
    config = tiny_config(*METHODS["released"], "decoding=greedy")
    metrics = run_job(config, tmp_path).metrics
    num_test, given = metrics["num_links"]["test"], metrics["num_links"]["train"] + 15
    assert metrics["export"]["test"]["num_links"] == num_test - 15
    assert metrics["calibration"]["num_entities"] == num_test - 15
    known = given + metrics["num_links"]["validation"]
    assert metrics["answer"]["num_predicted"] == 150 - known
    assert metrics["mapping"]["all"]["num_predicted"] == 150 - known


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> FinishedRun:
    """A run with informative beliefs, for any settings of the answer."""
    folder = tmp_path_factory.mktemp("run")
    trained = ("model.initial_epochs=40", "model.encoder.dim=100", "decoding=greedy")
    run_job(tiny_config_of("em.iterations=1", *trained), folder)
    return load_run(folder)


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with the usual decoding, to be read only."""
    folder = tmp_path_factory.mktemp("usual")
    run_job(tiny_config_of(*QUICK), folder)
    return folder


@pytest.mark.parametrize("decoding", option_names("decoding"))
def test_another_decoding_answers_as_a_run_with_it(
    decoding: str, usual: Path, tiny_config: Configs, tmp_path: Path
) -> None:
    predict(load_run(usual), tmp_path / "out", ExportSettings(), decoding)
    if decoding == "one_to_one":
        folder = usual
    else:
        folder = tmp_path / "other"
        run_job(tiny_config(*QUICK, f"decoding={decoding}"), folder)
    one, other = (
        (path / "alignment.tsv").read_bytes() for path in (folder, tmp_path / "out")
    )
    assert one == other


def test_the_decoding_of_the_run_keeps_its_settings(
    tiny_config: Configs, tmp_path: Path
) -> None:
    own = ("decoding=hungarian", "decoding.unmatched_prob=0.4")
    run_job(tiny_config(*QUICK, *own), tmp_path)
    predict(load_run(tmp_path), tmp_path / "out", ExportSettings(), "hungarian")
    one, other = (tmp_path / "alignment.tsv", tmp_path / "out" / "alignment.tsv")
    assert one.read_bytes() == other.read_bytes()


def test_a_threshold_leaves_the_improbable_unmatched(
    finished: FinishedRun, tmp_path: Path
) -> None:
    everything, _ = predict(
        finished, tmp_path / "a", ExportSettings(("jsonl",), top_k=4)
    )
    some, _ = predict(
        finished, tmp_path / "b", ExportSettings(("jsonl",), 4, threshold=0.5)
    )
    train = finished.split.supervision.train
    assert 0 < some["num_answered"] < everything["num_answered"] == 150 - len(train)
    assert some["num_answered"] + some["num_unmatched"] == 150 - len(train)
    for before, after in zip(
        objects(tmp_path / "a"), objects(tmp_path / "b"), strict=True
    ):
        kept = before["probability"] >= 0.5
        assert before.pop("target_label") == before["target"]
        assert after.pop("target_label", None) == after["target"]
        assert after == before | ({} if kept else {"target": None, "probability": None})
        probs = [candidate["probability"] for candidate in after["candidates"]]
        assert len(probs) == (1 if after["given"] else 4)
        assert probs == sorted(probs, reverse=True)
        assert not kept or after["candidates"][0]["target"] == after["target"]
    labels = {
        row["source"]: row["target"] for row in objects(tmp_path / "b") if row["given"]
    }
    assert labels == {str(source): str(target) for source, target in train}


def test_numbers_of_the_accepted_are_those_of_the_file(
    finished: FinishedRun, tmp_path: Path
) -> None:
    numbers, _ = predict(finished, tmp_path, ExportSettings(threshold=0.5))
    lines = (tmp_path / "alignment.tsv").read_text().splitlines()[1:]
    found = {int(row[0]): int(row[1]) for row in (line.split("\t") for line in lines)}
    parts = {
        "validation": finished.split.supervision.validation,
        "test": finished.split.test,
    }
    for name, links in parts.items():
        taken = [
            (source, target) for source, target in links.tolist() if source in found
        ]
        right = sum(found[source] == target for source, target in taken)
        assert numbers[name]["num_accepted"] == len(taken)
        assert numbers[name]["precision"] == pytest.approx(right / len(taken))
        assert numbers[name]["recall"] == pytest.approx(right / len(links))
        assert numbers[name]["precision_low"] < numbers[name]["precision"]
    train = {int(source) for source in finished.split.supervision.train[:, 0]}
    probs = [
        float(line.split("\t")[2])
        for line in lines
        if int(line.split("\t")[0]) not in train
    ]
    assert numbers["mean_prob"] == pytest.approx(np.mean(probs), abs=1e-5)
    unmatched = (tmp_path / "unmatched.tsv").read_text().splitlines()[1:]
    assert len(unmatched) == numbers["num_unmatched"] == 150 - len(found)


def test_a_target_precision_is_that_of_the_mean_probability(
    finished: FinishedRun, tmp_path: Path
) -> None:
    numbers, _ = predict(finished, tmp_path / "a", ExportSettings(target_precision=0.8))
    # too few validation links have a match to support it
    assert numbers["reached"] is False
    assert numbers["confirmable"] == pytest.approx(0.05 ** (1 / 20))
    assert numbers["mean_prob"] >= 0.8
    assert 0 < numbers["share_answered"] < 1
    given = ExportSettings(threshold=numbers["threshold"])
    predict(finished, tmp_path / "b", given)
    assert (tmp_path / "a/alignment.tsv").read_bytes() == (
        tmp_path / "b/alignment.tsv"
    ).read_bytes()
    line = answered_line(numbers)
    expected = "at which a precision of 0.8 is expected (not confirmed"
    assert expected in line
    num_free = len(finished.beliefs.probs) - len(finished.labels)
    assert (
        f"Matched {numbers['num_answered']} of {num_free} source entities without a given"
        in line
    )
    assert "20 validation links" in line


def test_a_precision_out_of_reach_is_reported(
    tiny_config: Configs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    weak = (*QUICK, "model.initial_epochs=1", "export.target_precision=1")
    with caplog.at_level(logging.WARNING):
        metrics = run_job(tiny_config(*weak), tmp_path).metrics
    numbers = metrics["export"]
    assert numbers["reached"] is False
    assert numbers["threshold"] is None
    assert numbers["num_answered"] == 0
    assert (
        "Precision 1 cannot be reached: no matches are probable enough" in caplog.text
    )
    lines = (tmp_path / "alignment.tsv").read_text().splitlines()[1:]
    assert len(lines) == metrics["num_links"]["train"]
    assert "0 of 20 validation links" in answered_line(numbers)


def test_the_answer_that_is_scored_is_the_accepted_one(
    tiny_config: Configs, tmp_path: Path
) -> None:
    metrics = run_job(tiny_config(*QUICK, "export.threshold=0.3"), tmp_path).metrics
    known = metrics["num_links"]["train"] + metrics["num_links"]["validation"]
    answer = metrics["answer"]
    assert answer["num_predicted"] + answer["num_unmatched"] == 150 - known
    assert answer["hit@1"] == metrics["export"]["test"]["recall"]
    assert answer["num_unmatched"] > 0
    text = (tmp_path / "series.jsonl").read_text()
    assert '"run/export/share_answered"' in text


def test_a_precision_needs_links_to_choose_by(
    tiny_config: Configs, tmp_path: Path
) -> None:
    run_job(tiny_config(*QUICK, "split.num_validation=0"), tmp_path)
    with pytest.raises(ConfigError, match="needs validation links"):
        predict(
            load_run(tmp_path), tmp_path / "out", ExportSettings(target_precision=0.9)
        )
    assert not (tmp_path / "out").exists()


def test_a_decoding_that_cannot_be_had_is_refused(
    tiny_config: Configs, tmp_path: Path
) -> None:
    run_job(tiny_config("method=paris"), tmp_path)
    for decoding, sentence in (
        ("hungarian", "answers with its matching"),
        (
            "magic",
            "Choose one of balanced, greedy, hungarian, mutual, one_to_one, sinkhorn",
        ),
    ):
        with pytest.raises(ConfigError, match=sentence):
            predict(load_run(tmp_path), tmp_path / "out", ExportSettings(), decoding)
