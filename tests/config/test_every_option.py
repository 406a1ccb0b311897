"""Every model with every rule, and both with every way of training, for a few steps each."""

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig

from emea.config.composition import option_names
from emea.run.job import run_job

Configs = Callable[..., DictConfig]

MODELS = option_names("model")
RULES = [rule for rule in option_names("rule") if rule != "none"]
TRAININGS = option_names("training")
# every pair of options appears; their full product is slow and tests nothing else
PAIRWISE = [
    (model, rule, TRAININGS[(i + j) % len(TRAININGS)])
    for (i, model), (j, rule) in itertools.product(enumerate(MODELS), enumerate(RULES))
]
ALONE = [(model, TRAININGS[i % len(TRAININGS)]) for i, model in enumerate(MODELS)]
SHORT = (
    "data.num_entities=100",
    "model.initial_epochs=2",
    "model.epochs_per_iteration=2",
    "++training.epochs_per_turn=1",
)


def run_and_check(config: DictConfig, folder: Path, num_stages: int) -> dict:
    run_job(config, folder)
    metrics = json.loads((folder / "metrics.json").read_text())
    assert len(metrics["history"]) == num_stages
    for stage in ("initial", "final"):
        values = [metrics[stage][key] for key in ("hit@1", "hit@10", "mrr", "mr")]
        assert all(map(math.isfinite, values))
    epochs = [entry["epochs"] for entry in metrics["history"]]
    assert epochs == [2 + config.training.turns] + [2] * (num_stages - 1)
    matched, unmatched = (
        (folder / name).read_text().splitlines()
        for name in ("alignment.tsv", "unmatched.tsv")
    )
    assert len(matched) > 1 and len(matched) + len(unmatched) == 102
    return metrics


def test_pairs_of_options_are_complete() -> None:
    assert {(model, training) for model, _, training in PAIRWISE} == set(
        itertools.product(MODELS, TRAININGS)
    )
    assert {(rule, training) for _, rule, training in PAIRWISE} == set(
        itertools.product(RULES, TRAININGS)
    )


@pytest.mark.parametrize(("model", "rule", "training"), PAIRWISE)
def test_em_runs(
    model: str, rule: str, training: str, tiny_config: Configs, tmp_path: Path
) -> None:
    options = (
        f"model={model}",
        f"rule={rule}",
        f"training={training}",
        "em.iterations=1",
    )
    metrics = run_and_check(tiny_config(*options, *SHORT), tmp_path, num_stages=2)
    assert (metrics["model"], metrics["rule"], metrics["training"]) == (
        model,
        rule,
        training,
    )
    assert metrics["method"] == "emea"
    assert metrics["history"][0]["labels"]["num_labels"] > 0


@pytest.mark.parametrize(("model", "training"), ALONE)
def test_neural_models_run_without_em(
    model: str, training: str, tiny_config: Configs, tmp_path: Path
) -> None:
    options = (f"model={model}", f"training={training}", "em=none", "rule=none")
    metrics = run_and_check(tiny_config(*options, *SHORT), tmp_path, num_stages=1)
    assert (metrics["model"], metrics["training"]) == (model, training)
    assert metrics["method"] == "neural"
