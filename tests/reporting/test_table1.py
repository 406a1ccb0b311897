import json
from pathlib import Path
from statistics import fmean

import pytest

from emea.errors import DataError
from emea.reporting.__main__ import DUAL, MODELS, TABLE1
from emea.reporting.cells import cell
from emea.reporting.paper_numbers import load_paper_numbers
from emea.reporting.records import load_committed, load_records
from emea.reporting.table1 import report, summary

from .fabricated import scores, write_run


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Five runs: PARIS, the neural model, EMEA strict on two splits, EMEA released on one."""
    runs = [("neural", "strict", 0, 0.2), ("emea", "strict", 0, 0.4)]
    runs += [("emea", "strict", 1, 0.5), ("emea", "released", 0, 0.6)]
    for number, (method, protocol, seed, hit) in enumerate(runs):
        kind = {"method": method, "protocol": protocol, "split_seed": seed}
        write_run(tmp_path, f"run{number}", **kind, final=scores(hit))
    answers = {"mapping": {"all": {"precision": 0.4, "f1": 0.35}}}
    write_run(tmp_path, "paris", method="paris", final=scores(0.3, others=False), **answers)
    lines = ["# source", "data,ratio,method,hit@1,mrr,mr", "dbp15k_zh,0.01,paris,0.01,,"]
    lines += ["dbp15k_zh,0.01,rrea,0.14,0.2,6.5", "dbp15k_zh,0.01,emea,0.517,,116.4"]
    (tmp_path / "paper.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_cells_are_means_over_splits(study: Path) -> None:
    runs = load_records(study / "records")
    strict = cell(runs, "hit@1", method="emea", protocol="strict")
    assert strict is not None
    assert (strict.mean, strict.num_runs) == (pytest.approx(0.45), 2)
    assert strict.spread == pytest.approx(0.0707, abs=1e-4)
    neural = cell(runs, "hit@1", "all", method="neural")
    assert neural is not None
    assert neural.mean == pytest.approx(0.1)
    assert cell(runs, "hit@1", method="prase") is None


def test_a_row_puts_our_runs_beside_the_papers(study: Path) -> None:
    row = next(line for line in summary(study).splitlines() if line.startswith("| dbp15k_zh"))
    assert row == (
        "| dbp15k_zh | 1% | 0.140 | 0.200 (1 split) | 0.517 | 0.600 (1 split) "
        "| 0.450 ± 0.071 | +0.150 |"
    )


def test_the_report_names_where_it_comes_from(study: Path) -> None:
    text = report(study)
    assert "5 recorded runs; commit cccccccccc (dirty: false), some GPU" in text
    all_targets = text.split("## Hit@1 among all targets")[1]
    assert "| dbp15k_zh | 1% | 0.150 (1 split) | no record | 0.100 (1 split) |" in all_targets


def test_reasoning_stands_beside_the_others(study: Path) -> None:
    hits, ranks = report(study).split("\n## ")[1:3]
    assert "| 0.010 | 0.300 (1 split) |  | no record | 0.140 | 0.200 (1 split) |" in hits
    assert "|  | n/a |  | no record | 0.200 | 0.200 (1 split) |" in ranks
    assert "| PARIS | dbp15k_zh | here | 0.300 (1 split) |" in summary(study)


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no recorded runs"):
        load_records(tmp_path)


def test_runs_of_uncommitted_code_do_not_count(tmp_path: Path) -> None:
    write_run(tmp_path, "a", tags={"dirty": "true"})
    with pytest.raises(DataError, match="committed code"):
        load_committed(tmp_path / "records")
    write_run(tmp_path, "b")
    assert [run.folder.name for run in load_committed(tmp_path / "records")] == ["b"]


def test_paper_numbers_leave_out_what_was_not_printed(study: Path) -> None:
    numbers = load_paper_numbers(study / "paper.csv")
    assert numbers["dbp15k_zh", 0.01, "emea"] == {"hit@1": 0.517, "mr": 116.4}


def test_the_papers_table_is_complete() -> None:
    numbers = load_paper_numbers(TABLE1 / "paper.csv")
    assert len(numbers) == 5 * 5 * 4
    assert numbers["dbp15k_ja", 0.3, "emea"] == {"hit@1": 0.771, "mrr": 0.837, "mr": 12.6}


@pytest.mark.parametrize("folder", [TABLE1, MODELS, DUAL], ids=lambda path: path.name)
def test_recorded_runs_say_which_code_made_them(folder: Path) -> None:
    for run in load_records(folder / "records"):
        assert len(run.header["tags"]["commit"]) == 40
        assert run.header["tags"]["dirty"] == "false"
        assert run.header["status"] == "FINISHED"
        assert run.header["tags"]["protocol"] == run.metrics["protocol"]


def test_recorded_runs_of_one_split_share_the_first_fit() -> None:
    runs = {run.folder.name: run for run in load_records(TABLE1 / "records")}
    for name, run in runs.items():
        if run.metrics["method"] == "emea":
            neural = runs["-".join(name.split("-")[:3]) + "-neural"].metrics
            assert run.metrics["initial"]["hit@1"] == pytest.approx(
                neural["final"]["hit@1"], abs=2e-3
            )


def test_means_are_what_the_records_say() -> None:
    runs = load_records(TABLE1 / "records")
    values = [
        json.loads((TABLE1 / "records" / f"zh-0.01-s{s}-paper-strict" / "metrics.json").read_text())
        for s in (0, 1, 2)
    ]
    found = cell(runs, "hit@1", data="dbp15k_zh", ratio=0.01, method="emea", protocol="strict")
    assert found is not None
    assert found.mean == pytest.approx(fmean(value["final"]["hit@1"] for value in values))


@pytest.mark.parametrize("ratio", [0.1, 0.2, 0.3])
@pytest.mark.parametrize("data", ["dbp15k_zh", "dbp15k_fr", "dbp15k_ja"])
def test_prase_is_ahead_among_all_targets_as_the_readme_says(data: str, ratio: float) -> None:
    runs = load_committed(TABLE1 / "records")
    where = {"data": data, "ratio": ratio, "protocol": "strict"}
    prase, emea = (cell(runs, "hit@1", "all", method=name, **where) for name in ("prase", "emea"))
    assert prase is not None and emea is not None
    assert prase.mean > emea.mean
