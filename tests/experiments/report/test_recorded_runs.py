"""The records of this repository: which code made them, and whether it could again."""

from functools import cache

import numpy as np
import pytest

from emea.config.checks import check_config
from emea.config.composition import composed, option_names
from emea.results.recorded_run import RecordedRun
from experiments.archive.study import EXPERIMENTS, find_studies
from experiments.report.records import load_records

RECORDED = [folder.name for folder in find_studies([EXPERIMENTS])]
GROUPS = ("protocol", "model", "training", "rule", "em")


@cache
def records(study: str) -> list[RecordedRun]:
    return load_records(EXPERIMENTS / study)


@pytest.mark.parametrize("study", RECORDED)
def test_runs_say_which_code_made_them(study: str) -> None:
    for run in records(study):
        tags, name = run.header["tags"], run.name
        assert len(tags["commit"]) == 40 and int(tags["commit"], 16), name
        assert tags["dirty"] == "false", name
        assert run.header["status"] == "FINISHED", name
        assert (
            tags["protocol"] == run.metrics["protocol"] == _param(run, "protocol.name")
        ), name
        leaks = (
            run.metrics["protocol"] == "released" and run.metrics["method"] == "emea"
        )
        assert tags["test_links_in_training"] == str(leaks).lower(), name
        assert run.started > 0, name


def test_runs_are_distinguished() -> None:
    runs = [run for study in RECORDED for run in records(study)]
    assert all(len(run.run_id) == 32 for run in runs)
    assert len({run.run_id for run in runs}) == len(runs)


@pytest.mark.parametrize("study", RECORDED)
def test_numbers_of_ranks_are_those_of_the_metrics(study: str) -> None:
    for run in records(study):
        ranks = run.ranks()
        assert ranks is not None, run.name
        assert len(ranks) == run.metrics["num_links"]["test"], run.name
        num_links = len(ranks) + run.metrics["num_links"].get("missed", 0)
        share = np.sum(ranks <= 1) / num_links
        assert share == pytest.approx(run.metrics["final"]["hit@1"], abs=1e-6), run.name


@pytest.mark.parametrize("study", RECORDED)
def test_runs_are_of_options_that_exist(study: str) -> None:
    """Each could be asked for again: by overrides of its experiment that make a valid config."""
    assert study in option_names("experiment")
    for choice in sorted({_overrides(run) for run in records(study)}):
        check_config(composed(choice))


@pytest.mark.parametrize("study", RECORDED)
def test_a_folders_name_says_pair_ratio_and_split(study: str) -> None:
    for run in records(study):
        data, ratio, split, *_ = run.name.split("-")
        # the options of the suite are official splits, and its ratio is that of the others
        if study == "suite" and run.metrics["split"] == "official":
            assert _pair(data) == run.metrics["data"], run.name
            assert split == f"s{run.metrics['split_seed']}", run.name
            continue
        # of a fold, and the ratio is that of the fold
        if run.metrics["split"] == "official":
            assert run.metrics["data"].startswith(data), run.name
            assert ratio == f"fold{_param(run, 'data.fold')}", run.name
            continue
        # all links are test links; six names of `literals_no_links` leave the ratio out
        if run.metrics["split"] == "none":
            assert ratio in ("none", f"s{run.metrics['split_seed']}"), run.name
            assert run.metrics["num_links"]["train"] == 0, run.name
            assert run.metrics["data"].startswith(_pair(data)), run.name
            continue
        if study == "ontologies":  # own files with a number of links
            numbers = run.metrics["num_links"]
            assert data == run.metrics["data"], run.name
            assert int(ratio) == numbers["train"] + numbers["validation"], run.name
            assert split == f"s{run.metrics['split_seed']}", run.name
            continue
        if data == "data":  # chosen by its folder, whose name comes last
            assert run.name.endswith(f"_{run.metrics['data']}"), run.name
        else:
            assert data in option_names("data"), run.name
            assert _pair(data) == run.metrics["data"], run.name
        assert (float(ratio), split) == (
            _ratio(run),
            f"s{run.metrics['split_seed']}",
        ), run.name


def test_runs_of_one_split_share_the_first_model() -> None:
    runs = {run.name: run for run in records("table1")}
    compared = 0
    for name, run in runs.items():
        alone = runs.get(_first_model(run)) or runs.get(
            "-".join(name.split("-")[:3]) + "-neural"
        )
        own_training = _param(run, "initial_from") is None
        if run.metrics["method"] == "emea" and alone is not None and not own_training:
            first, last = (
                run.metrics["initial"]["hit@1"],
                alone.metrics["final"]["hit@1"],
            )
            assert first == pytest.approx(last, abs=2e-3), name
            compared += 1
    assert compared >= 190


def _first_model(run: RecordedRun) -> str:
    """Return the name of the run whose weights the run started from."""
    return str(run.header["params"].get("initial_from")).split("/")[0]


def _ratio(run: RecordedRun) -> float:
    """Return the ratio of a run; a run that continues another one has the ratio of the first."""
    return float(run.header["params"].get("data.benchmark_ratio", run.metrics["ratio"]))


def _param(run: RecordedRun, key: str) -> object:
    return run.header["params"][key]


@cache
def _pair(option: str) -> str:
    if option not in option_names("data"):
        return option
    data = composed([f"data={option}"]).data
    return str(data.get("name") or data.get("folder", option).split("/")[-1])


def _overrides(run: RecordedRun) -> tuple[str, ...]:
    """The choices that the run's metrics name; a group its method does not use is ``none``."""
    official = run.metrics["split"] == "official"
    has_ratio = run.metrics["split"] != "none" and not official
    method = run.metrics["method"]
    chosen = {"method": "emea" if method == "neural" else method}
    chosen |= {"split": "official"} if official else {}
    chosen |= {"ratio.value": f"{_ratio(run):g}"} if has_ratio else {}
    for group in GROUPS:
        name = run.metrics[group]
        if name in option_names(group):
            chosen[group] = name
        else:
            assert name == "none" and method in ("paris", "prase"), (run.name, group)
    return tuple(f"{group}={name}" for group, name in chosen.items())
