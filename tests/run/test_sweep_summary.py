import csv
import json
import os
import pickle
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from rich.console import Console

from emea.config.composition import CONF
from emea.record.interrupted import is_locked
from emea.record.run_record import LOCK_FILE
from emea.run import sweep as sweep_callback
from emea.run.sweep import (
    SweepSummary,
    forget_outcome,
    launch_of,
    print_summary,
    read_outcomes,
    write_outcome,
)


def job(sweep: Path, number: int, overrides: list[str], hit: float | None) -> Path:
    """A job's folder as Hydra and the run leave it."""
    folder = sweep / f"{number}-synthetic"
    (folder / ".hydra").mkdir(parents=True)
    (folder / ".hydra" / "overrides.yaml").write_text(json.dumps(overrides))
    if hit is not None:
        metrics = {
            "protocol": "strict",
            "initial": {"hit@1": hit / 4, "mrr": 0.0},
            "final": {"hit@1": hit, "mrr": hit / 2},
            "one_to_one": {"hit@1": hit},
            "history": [{"validation": {"hit@1": 0.125}}],
        }
        (folder / "metrics.json").write_text(json.dumps(metrics))
    return folder


def printed(sweep: Path) -> str:
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    print_summary(read_outcomes(sweep), console)
    return console.export_text()


def test_seeds_are_taken_together_and_what_all_share_is_left_out(
    tmp_path: Path,
) -> None:
    for number, (em, seed, hit) in enumerate(
        [("paper", 0, 0.2), ("paper", 1, 0.4), ("dual", 0, 0.9)]
    ):
        job(tmp_path, number, ["data=zh", f"em={em}", f"split_seed={seed}"], hit)
    lines = [line for line in printed(tmp_path).splitlines() if "em=" in line]
    initial, final, mrr = "0.0750 ± 0.0354", "0.3000 ± 0.1414", "0.1500 ± 0.0707"
    first = ["em=paper", "2", initial, final, final, mrr, "0.1250 ± 0.0000"]
    assert cells(lines[0]) == [*first, "0-synthetic"]
    second = ["em=dual", "1", "0.2250", "0.9000", "0.9000", "0.4500", "0.1250"]
    assert cells(lines[1]) == [*second, "2-synthetic"]
    assert "1-synthetic" in printed(tmp_path)


def cells(line: str) -> list[str]:
    found = [cell.strip() for cell in line.strip("│ ").split("│")]
    assert found.pop(1) == "strict"
    return found


def test_jobs_come_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    for number in (10, 2, 0):
        job(tmp_path / "inner", number, [f"ratio={number}"], 0.5)
    settings = [one.setting for one in read_outcomes(tmp_path)]
    assert settings == [("ratio=0",), ("ratio=2",), ("ratio=10",)]


def test_a_recorded_run_counts_with_its_numbers(tmp_path: Path) -> None:
    earlier = job(tmp_path / "earlier", 0, [], 0.7)
    write_outcome(job(tmp_path / "sweep", 0, ["em=paper"], None), recorded=str(earlier))
    (outcome,) = read_outcomes(tmp_path / "sweep")
    assert outcome.metrics is not None
    assert outcome.metrics["final"]["hit@1"] == 0.7


def test_a_run_of_a_store_counts_with_the_numbers_of_the_store(tmp_path: Path) -> None:
    numbers = {"initial": {"hit@1": 0.25}, "final": {"hit@1": 0.5, "mrr": 0.75}}
    first, second = (job(tmp_path, number, ["em=paper"], None) for number in (0, 1))
    write_outcome(first, recorded="MLflow run name (id)", metrics=numbers)
    # the store had no numbers
    write_outcome(second, recorded="MLflow run name (id)", metrics={})
    outcomes = read_outcomes(tmp_path)
    assert [one.failed for one in outcomes] == ["", ""]
    assert outcomes[0].numbers == (0.25, 0.5, None, 0.75, None)
    assert outcomes[1].metrics is None


def test_the_sweep_is_locked_while_its_process_runs(tmp_path: Path) -> None:
    config = DictConfig({"hydra": {"sweep": {"dir": str(tmp_path)}}, "study": "s"})
    callback = SweepSummary()
    callback.on_multirun_start(config)
    assert is_locked(tmp_path / LOCK_FILE)
    pickle.dumps(callback)
    callback.on_multirun_end(config)
    assert not is_locked(tmp_path / LOCK_FILE)


def test_the_table_is_written_into_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sweep.json").write_text(
        json.dumps({"num_jobs": 3, "swept": ["em", "em.x"]})
    )
    job(tmp_path, 0, ["em=paper", "seed=1"], 0.5)
    job(tmp_path, 1, ["em=dual", "seed=1"], 0.9)
    write_outcome(
        job(tmp_path, 2, ["em=a|b"], None), failed='ConfigError: "no", he said'
    )
    with pytest.raises(SystemExit):
        SweepSummary().on_multirun_end(sweep_config(tmp_path))
    assert f"Results: {tmp_path / 'results.md'}" in capsys.readouterr().out
    lines = (tmp_path / "results.md").read_text().splitlines()
    assert (
        "| em=dual | strict | 1 | 0.2250 | 0.9000 | 0.9000 | 0.4500 | 0.1250 | 1-synthetic |"
        in lines
    )
    assert (
        lines[-1] == f'- failed: {tmp_path / "2-synthetic"}: ConfigError: "no", he said'
    )
    with (tmp_path / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["overrides"] for row in rows] == [
        "em=paper seed=1",
        "em=dual seed=1",
        "em=a|b",
    ]
    assert all(
        name.isidentifier() for name in rows[0]
    )  # frame.final_hit_at_1 in pandas
    assert [row["em"] for row in rows] == ["paper", "dual", "a|b"] and rows[0][
        "em_x"
    ] == ""
    assert rows[0]["seed"] == "1" and {"data", "ratio", "split_seed"} <= set(rows[0])
    assert float(rows[1]["final_hit_at_1"]) == 0.9
    assert (
        rows[2]["failed"] == 'ConfigError: "no", he said'
        and rows[2]["final_hit_at_1"] == ""
    )


@pytest.mark.parametrize(
    ("sweeper", "typed", "total"),
    [
        ({"params": None}, ["data=zh,fr", "seed=range(3)", "em=dual"], 6),
        ({"params": {"data": "zh,fr", "em": "paper,dual"}}, ["data=zh"], 2),
        ({"params": None}, [], 1),
        ({"n_trials": 20}, ["em.ridge=interval(0,1)"], 20),
        ({"params": None}, ["em.ridge=interval(0,1)"], None),
    ],
)
def test_each_job_says_its_number(
    sweeper: dict[str, Any],
    typed: list[str],
    total: int | None,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    config = sweep_config(
        tmp_path, sweeper=sweeper, overrides={"task": typed}, job={"num": 2}
    )
    summary = SweepSummary()
    summary.on_multirun_start(config)
    elsewhere = pickle.loads(
        pickle.dumps(summary)
    )  # as launchers send it to other processes
    elsewhere.on_job_start(config)
    checking, message = caplog.messages
    runs = "1 run" if total == 1 else f"{total or 'all'} runs"
    assert checking == f"Checking the settings of {runs}"
    assert message.partition(",")[0] == (
        "Run 3" if total is None else f"Run 3 of {total}"
    )
    config.hydra.mode = RunMode.RUN
    elsewhere.on_job_start(config)
    assert len(caplog.messages) == 2


def test_the_time_left_of_a_sweep_follows_from_its_finished_jobs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO")
    config = sweep_config(
        tmp_path, overrides={"task": ["seed=range(6)"]}, job={"num": 3}
    )
    summary = SweepSummary()
    (tmp_path / "0-earlier").mkdir()
    (tmp_path / "0-earlier" / "metrics.json").write_text("{}")
    os.utime(tmp_path / "0-earlier" / "metrics.json", (0, 0))  # of an earlier sweep
    summary.on_multirun_start(config)
    elsewhere = pickle.loads(
        pickle.dumps(summary)
    )  # as launchers send it to other processes
    elsewhere.on_job_start(config)
    assert caplog.messages[-1] == "Run 4 of 6"
    for job in range(2):  # two at a time took 200 s
        (tmp_path / f"{job}-new").mkdir()
        (tmp_path / f"{job}-new" / "metrics.json").write_text("{}")
    monkeypatch.setattr(sweep_callback.time, "time", lambda: summary.started + 200)
    elsewhere.on_job_start(config)
    assert caplog.messages[-1] == "Run 4 of 6, about 7 min left"
    write_outcome(tmp_path / "2-new", recorded="elsewhere")  # took no time
    config.skip_recorded = True
    elsewhere.on_job_start(config)
    assert caplog.messages[-1] == "Run 4 of 6, at most about 5 min left"


def test_a_job_knows_what_its_sweep_varies(tmp_path: Path) -> None:
    typed = ["ratio='0.05'", "em.ridge=0.1", "study=a b"]
    hydra: Any = SimpleNamespace(
        mode=RunMode.MULTIRUN,
        sweep=SimpleNamespace(dir=str(tmp_path / "multirun" / "day")),
        overrides=SimpleNamespace(task=typed),
    )
    folder = tmp_path / "multirun" / "day"
    folder.mkdir(parents=True)
    (folder / "sweep.json").write_text(json.dumps({"swept": ["ratio", "em.ridge"]}))
    launch = launch_of(hydra)
    assert (launch.sweep, launch.swept) == ("day", {"ratio": "0.05", "em.ridge": "0.1"})
    assert (
        launch.command == "emea run 'ratio='\"'\"'0.05'\"'\"'' em.ridge=0.1 'study=a b'"
    )
    hydra.mode = RunMode.RUN
    assert launch_of(hydra).sweep is None


def test_the_folder_of_a_job_shows_what_its_sweep_varies(tmp_path: Path) -> None:
    subdir = yaml.safe_load((CONF / "config.yaml").read_text())["hydra"]["sweep"][
        "subdir"
    ]
    names = []
    for swept in (["em", "ratio", "data.folder"], []):
        (tmp_path / "sweep.json").write_text(json.dumps({"swept": swept}))
        typed = ["em=dual", "ratio='0.05'", "data.folder=a/b c", "study=x"]
        others = {"overrides": {"task": typed}, "job": {"num": 3}}
        config = sweep_config(tmp_path, **others)
        config.hydra.sweep.subdir = re.sub(r"\$\{hydra:.*\}\}$", "usual}", subdir)
        names.append(config.hydra.sweep.subdir)
    assert names == ["3-em_dual-ratio_0.05-data.folder_a_b_c", "3-usual"]


def sweep_config(folder: Path, **others: Any) -> DictConfig:
    hydra = {"mode": RunMode.MULTIRUN, "sweep": {"dir": str(folder)}, **others}
    return OmegaConf.create({"hydra": hydra})


def test_brackets_are_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number, features in enumerate(("[noisy_or]", "[similarity]")):
        job(tmp_path, number, [f"em.two_way.features={features}"], 0.5)
    write_outcome(
        job(tmp_path, 2, [], None), failed="ConfigError: say so: trust=[my.mod] [/b]"
    )
    print_summary(read_outcomes(tmp_path))
    text = capsys.readouterr().out
    assert "em.two_way.features=[noisy_or]" in text
    assert "em.two_way.features=[similarity]" in text
    assert "trust=[my.mod] [/b]" in text


def test_an_earlier_run_in_the_folder_is_no_success(tmp_path: Path) -> None:
    folder = job(tmp_path, 0, ["seed=1", "em=paper"], 0.9)
    write_outcome(folder, failed="ConfigError: no")
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.metrics is None
    assert outcome.failed == "ConfigError: no"
    forget_outcome(folder)
    forget_outcome(tmp_path / "nowhere")
    (outcome,) = read_outcomes(tmp_path)
    assert outcome.metrics is not None and not outcome.failed


def test_a_failure_sets_the_status_even_if_the_table_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(outcomes: Any) -> None:
        raise ValueError("no terminal")

    monkeypatch.setattr(sweep_callback, "print_summary", breaks)
    job(tmp_path, 0, [], None)
    config = sweep_config(tmp_path)
    with pytest.raises(SystemExit, match="error: the job failed"):
        SweepSummary().on_multirun_end(config)
