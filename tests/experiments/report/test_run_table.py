"""The table of runs, and which runs represent a method."""

from typing import Any

import pytest
from omegaconf import OmegaConf

from emea.config.composition import composed
from emea.record.run_header import flat_params
from emea.results.recorded_run import RecordedRun
from experiments.report.methods import (
    COMMON,
    DUAL,
    DUAL_PARTS,
    EMEA,
    EMEA_DENSE,
    FOLDS,
    LIGHTEA_MEMBER,
    PARIS,
    PRASE,
    RREA,
    USUAL,
    Method,
    comparable_settings,
    validation_from_train,
)
from experiments.report.run_table import values_at

from .fabricated import NEURAL, alone, made, reasoned, viewed

NOT_PARTS = {"_target_", "_partial_", "tolerance", "max_candidates", "ridge"}
"""Settings of two-way compatibility that switch nothing off."""


def on_zh(
    runs: list[RecordedRun], method: Method, protocol: str = "strict", study: str = ""
) -> dict[int, tuple[str, str]]:
    """Name and stage of the run that represents a method, by split seed."""
    found = viewed(runs, study).of(method, protocol, "dbp15k_zh", 0.01)
    return {run.split_seed: (run.row["name"], run.stage) for run in found}


def hits(
    runs: list[RecordedRun], method: Method, protocol: str = "strict"
) -> list[float | None]:
    found = viewed(runs).of(method, protocol, "dbp15k_zh", 0.01)
    return values_at(found, "{stage}.hit@1")


def defaults(*overrides: str) -> dict[str, Any]:
    return flat_params(OmegaConf.to_container(composed(overrides), resolve=True))


@pytest.mark.parametrize(
    "other",
    [
        {"data": "dbp15k_fr"},
        {"ratio": 0.05},
        {"protocol": "released"},
        {"model": "lightea"},
        {"training": "semi"},
        {"rule": "avoid_conflict"},
        {"em": "dual"},
        {"params": {"em.num_candidates": 20}},
        {"params": {"em.iterations": 5}},
    ],
)
def test_a_run_of_something_else_does_not_stand_for_it(other: dict[str, Any]) -> None:
    assert on_zh([made(**other)], EMEA) == {}
    assert on_zh([made(), made("b", started=9, **other)], EMEA) == {0: ("a", "final")}


def test_a_run_older_than_a_setting_has_its_default() -> None:
    dense = {"em.evidence": "dense"}
    assert on_zh([made()], EMEA_DENSE) == {}
    assert list(on_zh([made()], EMEA)) == [0]
    assert list(on_zh([made(params=dense)], EMEA_DENSE)) == [0]
    assert on_zh([made(params=dense)], EMEA) == {}
    from_train = validation_from_train(DUAL)
    assert on_zh([made(em="dual", params=DUAL_PARTS)], from_train) == {}
    params = DUAL_PARTS | {"split.validation_from": "train"}
    assert list(on_zh([made(em="dual", params=params)], from_train)) == [0]
    assert on_zh([made(em="dual", params=params)], DUAL) == {}


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 7},
        {"split.num_validation": 10},
        {"split.validation_from": "train"},
        {"similarity.name": "cosine"},
        {"decoding.name": "mutual"},
        {"search.name": "kmeans"},
    ],
)
@pytest.mark.parametrize("kind", [{}, NEURAL])
def test_other_seeds_and_decodings_stand_for_nothing(
    kind: dict[str, Any], other: dict[str, Any]
) -> None:
    method = RREA if kind else EMEA
    assert on_zh([made(params=COMMON, **kind)], method)
    assert on_zh([made(params=COMMON | other, **kind)], method) == {}


def test_what_all_runs_have_in_common_are_the_defaults() -> None:
    # only some models stop early
    configured = comparable_settings(defaults("data=zh"))
    stopping = {"model.early_stopping.held_out"}
    # settings of earlier versions, and those that runs of earlier versions lack
    earlier = {"literals.transliterate", "protocol.test_pool", LIGHTEA_MEMBER, FOLDS}
    others = {key for key in COMMON if key not in stopping} - earlier
    assert {key: configured[key] for key in others} == {
        key: COMMON[key] for key in others
    }
    configured = comparable_settings(defaults("data=zh", "model=alinet"))
    assert {key: configured[key] for key in stopping} == {
        key: COMMON[key] for key in stopping
    }


def test_a_studys_own_runs_count_before_later_ones() -> None:
    own, later = made("own", "here", started=1), made("later", "there", started=2)
    for study, name in (("here", "own"), ("there", "later"), ("elsewhere", "later")):
        assert on_zh([later, own], EMEA, study=study) == {0: (name, "final")}


def test_the_first_source_that_has_the_split_counts() -> None:
    em = [made("em0", started=9), made("em1", started=9, split_seed=1)]
    runs = [alone(0.2), *em]
    assert on_zh(runs, RREA) == {0: ("alone", "final"), 1: ("em1", "initial")}
    assert hits(runs, RREA) == [0.2, 0.1234]


@pytest.mark.parametrize("setting", USUAL)
def test_runs_that_vary_the_usual_do_not_stand_for_it(setting: str) -> None:
    assert on_zh([made(params=USUAL)], EMEA)
    assert on_zh([made(params=USUAL | {setting: "something else"})], EMEA) == {}


@pytest.mark.parametrize(
    "part", [None, *DUAL_PARTS, "em.iterations", "em.two_way.max_candidates"]
)
def test_ablations_do_not_stand_for_the_whole(part: str | None) -> None:
    params = DUAL_PARTS | ({part: "something else"} if part else {})
    found = on_zh([made(em="dual", params=params)], DUAL)
    assert bool(found) is (part is None)


def test_the_whole_is_what_em_dual_does_by_default() -> None:
    configured = defaults("em=dual")
    parts = {
        key: value for key, value in DUAL_PARTS.items() if key != "em.two_way.memory"
    }
    assert {key: configured[key] for key in parts} == parts
    beside = [f"em.two_way.{name}" for name in ("max_candidates", "ridge")]
    assert [configured[key] for key in beside] == [USUAL[key] for key in beside]
    settings = {key for key in configured if key.startswith("em.two_way.")}
    assert settings - {f"em.two_way.{name}" for name in NOT_PARTS} == set(parts)


@pytest.mark.parametrize("rule", ["paris", "avoid_conflict", "paris_avoid_conflict"])
def test_the_usual_settings_are_the_defaults(rule: str) -> None:
    configured = comparable_settings(defaults(f"rule={rule}"))
    found = {key: configured[key] for key in USUAL if key in configured}
    assert found.items() <= USUAL.items()
    assert {"em.iterations", "em.num_candidates"} <= set(found)
    # N of AvoidConf has another name in each set of rules
    assert any("num_neighbours" in key for key in found) is ("avoid_conflict" in rule)


def test_splits_that_methods_share() -> None:
    runs = [made(f"em{seed}", split_seed=seed) for seed in (0, 1)]
    runs += [reasoned("paris", 0.3, split_seed=seed) for seed in (1, 2)]
    place = ("strict", "dbp15k_zh", 0.01)
    shared = viewed(runs).shared_splits(
        [(EMEA, *place), (PARIS, *place), (PRASE, *place)]
    )
    assert shared == {1}
    apart = [made("em"), reasoned("paris", 0.3, split_seed=1)]
    assert viewed(apart).shared_splits([(EMEA, *place), (PARIS, *place)]) == set()
