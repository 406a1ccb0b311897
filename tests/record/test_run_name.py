"""Names of runs: what was swept comes first, and no two runs of a sweep share a name."""

from itertools import product

import pytest
from omegaconf import OmegaConf

from emea.config.composition import composed
from emea.record.run_header import run_name
from emea.record.run_record import flat_params
from emea.record.ui import swept_keys


def params(*overrides: str) -> dict[str, object]:
    return flat_params(OmegaConf.to_container(composed(list(overrides)), resolve=True))


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        (["ratio='0.01'"], "synthetic 1% rrea s0"),
        (["em=dual"], "synthetic 5% rrea dual s0"),
        (["protocol=released", "split_seed=3"], "synthetic 5% rrea released s3"),
        (
            ["training=semi", "em=none", "seed=2"],
            "synthetic 5% rrea semi no EM s0 seed2",
        ),
    ],
)
def test_names_of_single_runs(overrides: list[str], name: str) -> None:
    assert run_name(params(*overrides)) == name


@pytest.mark.parametrize(
    ("swept", "name"),
    [
        (
            {"em.num_candidates": "5", "rule": "avoid_conflict"},
            "K=5 avoid_conflict zh 5% rrea s0",
        ),
        ({"variant": "candidates_5"}, "candidates_5 zh 5% rrea avoid_conflict s0"),
        (
            {"em.ridge": "0.1", "em.two_way.ridge": "0.2"},
            "em.ridge=0.1 em.two_way.ridge=0.2 zh 5% rrea avoid_conflict s0",
        ),
    ],
)
def test_swept_settings_come_first(swept: dict[str, str], name: str) -> None:
    values = {
        "data.name": "dbp15k_zh",
        "ratio.value": 0.05,
        "split.name": "random",
        "model.name": "rrea",
        "em.name": "paper",
        "rule.name": "avoid_conflict",
        "split_seed": 0,
        "seed": 0,
    }
    assert (
        run_name(values | {key: swept[key] for key in swept if "." in key}, swept)
        == name
    )


def test_names_within_a_sweep_are_unique() -> None:
    keys = ("data.name", "ratio.value", "em.num_candidates", "rule.name", "split_seed")
    options = (("a", "b"), (0.01, 0.05), (5, 10), ("paris", "avoid_conflict"), (0, 1))
    runs = [dict(zip(keys, values, strict=True)) for values in product(*options)]
    assert swept_keys(runs) == list(keys)  # type: ignore[arg-type]
    names = {run_name(run, {key: str(run[key]) for key in keys}) for run in runs}  # type: ignore
    assert len(names) == len(runs)
