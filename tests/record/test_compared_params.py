"""What MLflow shows of a run's parameters."""

from collections.abc import Callable

import pytest

from emea.record.mlflow_params import compared_params
from emea.record.mlflow_store import MlflowStore
from emea.record.run_record import RunHeader


@pytest.mark.parametrize(
    "key",
    [
        "data._target_",
        "model.optimizer._partial_",
        "data.root",
        "data.download",
        "initial_from",
        "split.seed",
        "study",
        "tracking.uri",
        "trainer.block_size",
        "hydra.job.num",
    ],
)
def test_uninformative_parameters_are_left_out(key: str) -> None:
    assert compared_params({key: "x", "seed": 0}) == {"seed": 0}


@pytest.mark.parametrize(
    "key",
    [
        "data.name",
        "data.folder",
        "em.iterations",
        "model.encoder.dim",
        "protocol.name",
        "ratio.value",
        "split.name",
        "split_seed",
        "studying",
        "trainers",
    ],
)
def test_what_can_make_a_difference_stays(key: str) -> None:
    assert compared_params({key: None}) == {key: None}


def test_groups_that_the_method_does_not_use_are_left_out() -> None:
    groups = {"model.name": "rrea", "em.iterations": 10, "similarity.k": 10, "data.name": "x"}
    prase = groups | {"method.uses": "['model', 'similarity', 'search']"}
    assert set(compared_params(prase)) == {"model.name", "similarity.k", "data.name"}
    assert set(compared_params(groups | {"method.uses": "[]"})) == {"data.name"}
    assert compared_params(groups) == groups


def test_the_store_shows_a_part_and_the_header_keeps_all(
    store: MlflowStore, make_header: Callable[..., RunHeader]
) -> None:
    header = make_header(params={"seed": 0, "tracking.uri": "sqlite:///x"})
    run = store.client.get_run(store.create_run(header))
    assert run.data.params == {"seed": "0"}
    assert set(header.params) == {"seed", "tracking.uri"}


def test_settings_without_effect_are_left_out() -> None:
    params = {
        "method.uses": "['model', 'em', 'rule']",
        "method.name": "emea",
        "em.name": "none",
        "em.iterations": 0,
        "em.ridge": 0.1,
        "rule.name": "paris",
        "model.name": "rrea",
        "model.epochs_per_iteration": 10,
        "split.name": "official",
        "ratio.value": 0.05,
    }
    shown = compared_params(params)
    assert set(shown) == {"method.name", "em.name", "em.iterations", "model.name", "split.name"}
    with_em = compared_params({**params, "em.name": "paper", "em.iterations": 5})
    assert {"rule.name", "em.ridge", "model.epochs_per_iteration"} <= set(with_em)
