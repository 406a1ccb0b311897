"""Every experiment runs from end to end, on the smallest pair and for a few steps."""

from pathlib import Path

import pytest

from emea.config.experiment import jobs, sweep_params
from emea.config.files import option_names
from emea.config.overrides import composed
from emea.config.schema import register_schema
from emea.run.job import run_job

ON_NAMES = ("literals", "literals_no_links")
"""Experiments on names, which the synthetic pair does not have."""

EXPERIMENTS = [
    name for name in option_names("experiment") if "/" not in name and name not in ON_NAMES
]
EVERYWHERE = {"data", "ratio", "split_seed"}


@pytest.fixture(autouse=True)
def schema() -> None:
    register_schema()


def test_each_experiment_has_a_smoke_variant_and_a_folder() -> None:
    small = [name.removeprefix("smoke/") for name in option_names("experiment") if "/" in name]
    assert small == EXPERIMENTS
    folders = {path.parent.name for path in Path("experiments").glob("*/results.md")}
    assert folders == set(EXPERIMENTS)


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_smoke_variant_sweeps_over_what_the_experiment_does(experiment: str) -> None:
    whole, small = (sweep_params(name) for name in (experiment, f"smoke/{experiment}"))
    for key in whole.keys() - EVERYWHERE:
        assert small[key] == whole[key]


@pytest.mark.parametrize(
    "experiment",
    [
        pytest.param(name, marks=() if name == "figure5" else pytest.mark.slow)
        for name in EXPERIMENTS
    ],
)
def test_it_runs(experiment: str, tmp_path: Path) -> None:
    for number, job in enumerate(jobs(f"smoke/{experiment}", ["tracking=none"])):
        metrics = run_job(composed(job), tmp_path / str(number)).metrics.as_dict()
        assert 0 <= metrics["final"]["hit@1"] <= 1
