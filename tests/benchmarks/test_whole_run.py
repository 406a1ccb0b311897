"""The benchmarks of whole runs measure what they say."""

import pytest

from benchmarks import whole_run
from emea.config.checks import check_config
from emea.config.composition import composed
from emea.config.run_config import RunConfig
from emea.run.em_run import stages

QUICK = ["data.num_entities=150", "split.num_validation=10", "model.initial_epochs=4"]
QUICK += ["model.epochs_per_iteration=2", "em.iterations=1", "trainer=cpu"]
QUICK += ["model.encoder.dim=16"]


@pytest.mark.slow
def test_a_whole_run_is_timed_and_described() -> None:
    numbers = whole_run.measure([*QUICK, "tracking=none"])
    assert numbers["epochs"] == "4 + 1 x 2"
    assert 0 < numbers["neural_s"] < numbers["total_s"]
    assert numbers["joint_cpu_s"] > 0
    assert 0 <= numbers["final"]["hit@1"] <= 1


@pytest.mark.parametrize(
    ("options", "num_fits"),
    [
        (["training=semi"], 2),
        (["ensemble=models"], 6),
        (["ensemble=seeds", "model=lightea"], 2),
    ],
)
def test_a_shortened_run_has_few_epochs_in_each_fit_and_turn(
    options: list[str], num_fits: int
) -> None:
    config = composed(["data=synthetic", "tracking=none", "trainer=cpu", *options])
    short = whole_run.shortened(config)
    check_config(short)
    fits = stages(RunConfig.of(short))
    assert len(fits) == num_fits * short.ensemble.get("num_members", 1)
    for fit, before in zip(fits, stages(RunConfig.of(config)), strict=False):
        assert fit.num_epochs <= min(whole_run.FEW_EPOCHS, before.num_epochs)
        assert fit.num_turns <= 1
    if "training=semi" in options:
        assert max(fit.num_turns for fit in fits) == 1
        assert short.training.epochs_per_turn == whole_run.FEW_EPOCHS
