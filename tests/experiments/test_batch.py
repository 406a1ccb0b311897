import json
from pathlib import Path

import numpy as np
import pytest

from emea.config.composition import composed
from experiments.archive.study import read_study
from experiments.batch import cell_name, first_training, main

QUICK = ["data=synthetic", "ratio=0.2", "split_seed=0", "data.num_entities=150"]
QUICK += [
    "split.num_validation=10",
    "model.initial_epochs=4",
    "model.epochs_per_iteration=2",
]
QUICK += ["em.iterations=1", "trainer=cpu", "model.encoder.dim=16"]


@pytest.mark.slow
def test_cells_are_run_once_and_recorded(tmp_path: Path) -> None:
    out, study = tmp_path / "runs", tmp_path / "study"
    arguments = ["figure5", *QUICK, "--out", str(out)]
    assert main([*arguments, "--share-first", "--record", str(study)]) == 0
    first, *later = sorted(
        read_study(study), key=lambda run: str(run.scores["method"]), reverse=True
    )
    assert first.scores["method"] == "neural"
    assert sorted(run.scores["protocol"] for run in later) == ["released", "strict"]
    assert {run.scores["initial"]["mrr"] for run in later} == {
        first.scores["final"]["mrr"]
    }
    final, initial = later[0].ranks("final"), later[0].ranks("initial")
    assert final is not None and initial is not None
    assert np.mean(final <= 1) == pytest.approx(later[0].scores["final"]["hit@1"])
    assert np.mean(initial <= 1) == pytest.approx(first.scores["final"]["hit@1"])
    assert len({run.links_checksum for run in (first, *later)}) == 1
    assert first.links_checksum is not None
    assert str(tmp_path) not in (study / "runs.jsonl").read_text()
    written = (out / later[0].name / "metrics.json").stat().st_mtime_ns
    assert main([*arguments, "--share-first"]) == 0
    assert (out / later[0].name / "metrics.json").stat().st_mtime_ns == written


@pytest.mark.slow
def test_a_failing_cell_is_reported_and_does_not_stop_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    two = [
        "data=zh,synthetic",
        "protocol=strict",
    ]  # zh has no number of entities to choose
    assert main(["figure5", *QUICK[1:], *two, "--out", str(tmp_path)]) == 1
    assert "failed" in caplog.text
    [finished] = tmp_path.glob("*/metrics.json")
    assert json.loads(finished.read_text())["data"] == "synthetic"


@pytest.mark.parametrize("dirty", ["unknown", "false"])
def test_uncommitted_code_is_reported_before_the_runs(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    dirty: str,
) -> None:
    monkeypatch.setenv("EMEA_COMMIT", "abc")
    monkeypatch.setenv("EMEA_DIRTY", dirty)
    assert main(["figure5", *QUICK, "--out", str(tmp_path), "--budget", "-1"]) == 1
    assert ("EMEA_DIRTY=false" in caplog.text) == (dirty != "false")


def test_names_tell_pair_ratio_and_split_first() -> None:
    job = [
        "variant=emea",
        "data=zh",
        "ratio='0.05'",
        "split_seed=2",
        "experiment=table1",
    ]
    assert cell_name(job) == "zh-0.05-s2-emea"
    assert cell_name([*job, "em.two_way={}"]) == "zh-0.05-s2-emea-usual"
    assert cell_name([*job, "em.two_way={sweeps:1}"]) == "zh-0.05-s2-emea-sweeps_1"


@pytest.mark.slow
def test_runs_that_differ_in_em_alone_share_their_first_training() -> None:
    usual = first_training(composed(["data=zh", "ratio=0.05"]))
    assert usual == first_training(
        composed(["data=zh", "ratio=0.05", "em=dual", "rule=paris"])
    )
    assert usual == first_training(
        composed(["data=zh", "ratio=0.05", "protocol=released"])
    )
    assert usual != first_training(composed(["data=zh", "ratio=0.05", "model=alinet"]))
    assert usual != first_training(composed(["data=zh", "ratio=0.05", "split_seed=1"]))
    assert first_training(composed(["data=zh", "training=semi"])) is None
    assert first_training(composed(["data=zh", "method=paris"])) is None
    assert first_training(composed(["data=zh", "em=none", "rule=none"])) is None
