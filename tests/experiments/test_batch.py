import tarfile
from pathlib import Path

import numpy as np
import pytest

from emea.errors import UserError
from emea.reporting.records import load_records
from experiments.batch import main

QUICK = ["data.num_entities=150", "split.num_validation=10", "model.initial_epochs=4"]
QUICK += ["model.epochs_per_iteration=2", "em.iterations=1", "trainer=cpu"]


def test_cells_are_run_once_and_packed(tmp_path: Path) -> None:
    out, archive = tmp_path / "runs", tmp_path / "records.tgz"
    arguments = [str(out), "--data", "synthetic", "--ratio", "0.2", "--override", *QUICK]
    main([*arguments, "--pack", str(archive)])
    names = [f"synthetic-0.2-s0-{kind}" for kind in ("neural", "paper-released", "paper-strict")]
    with tarfile.open(archive) as tar:
        tar.extractall(tmp_path / "records", filter="data")
    runs = load_records(tmp_path / "records")
    assert [run.folder.name for run in runs] == names
    assert [run.metrics["method"] for run in runs] == ["neural", "emea", "emea"]
    assert {run.metrics["initial"]["mrr"] for run in runs} == {runs[0].metrics["final"]["mrr"]}
    with np.load(runs[2].folder / "ranks.npz") as ranks:
        assert np.mean(ranks["final_in_pool"] <= 1) == pytest.approx(runs[2].value("hit@1"))
    written = (out / names[0] / "metrics.json").stat().st_mtime_ns
    main(arguments)
    assert (out / names[0] / "metrics.json").stat().st_mtime_ns == written
    with pytest.raises(UserError, match="another configuration"):
        main([*arguments, "model.encoder.dim=50"])


def test_a_file_names_runs_that_start_from_each_other(tmp_path: Path) -> None:
    shared = "data=synthetic ratio=0.2"
    lines = f"""# a remark
first {shared} em=none
second {shared} initial_from=@first  # starts from the first

third {shared} em=none seed=1
broken {shared} em=none initial_from=@nowhere
"""
    file, out = tmp_path / "cells.txt", tmp_path / "runs"
    file.write_text(lines)
    for part in ("0/2", "1/2"):
        main([str(out), "--cells", str(file), "--part", part, "--override", *QUICK[:-2], QUICK[-1]])
        expected = ["first", "second"] if part == "0/2" else ["first", "second", "third"]
        assert sorted(path.parent.name for path in out.glob("*/metrics.json")) == expected
    first, second = load_records(out)[:2]
    assert second.metrics["initial"]["mrr"] == first.metrics["final"]["mrr"]


def test_a_baseline_is_one_run_a_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cell = ["--data", "synthetic", "--ratio", "0.2", "--method", "paris"]
    main([str(tmp_path), *cell, "--override", *QUICK[:2], "trainer=cpu"])
    runs = load_records(tmp_path)
    assert [run.folder.name for run in runs] == ["synthetic-0.2-s0-paris-strict"]
    assert f"{runs[0].value('hit@1'):.4f}  n/a" in capsys.readouterr().out
