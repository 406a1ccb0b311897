"""Which runs stand for a method."""

from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from emea.config.overrides import composed
from emea.config.schema import register_schema
from emea.record.run_header import flat_params
from emea.reporting.methods import (
    COMMON,
    DUAL,
    DUAL_PARTS,
    EMEA,
    PARIS,
    PRASE,
    RREA,
    RREA_SEMI,
    USUAL,
    Found,
    Method,
    runs_of,
)
from emea.reporting.records import RecordedRun, seen_from

from .fabricated import NEURAL, alone, made, reasoned, scores

NOT_PARTS = {"_target_", "_partial_", "tolerance", "max_candidates", "ridge"}
"""Settings of two-way compatibility that switch nothing off."""


def on_zh(runs: list[RecordedRun], method: Method, protocol: str = "strict") -> dict[int, Found]:
    return runs_of(runs, method, protocol, "dbp15k_zh", 0.01)


def defaults(*overrides: str) -> dict[str, Any]:
    register_schema()
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
    wanted = made()
    assert on_zh([wanted, made("b", started=9, **other)], EMEA) == {0: Found(wanted, "final")}


def test_a_run_stands_for_its_split() -> None:
    runs = [made(f"s{split}", split_seed=split) for split in (2, 0, 1)]
    found = on_zh(runs, EMEA)
    assert list(found) == [0, 1, 2]
    assert [one.run.folder.name for one in found.values()] == ["s0", "s1", "s2"]


def test_settings_that_a_run_has_not_are_not_asked_of_it() -> None:
    method = Method("EMEA", "", EMEA.sources, usual={"rule.num_neighbours": 5})
    assert list(on_zh([made()], method)) == [0]
    assert on_zh([made(params={"rule.num_neighbours": 20})], method) == {}


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 7},
        {"split.num_validation": 10},
        {"split.validation_from": "train"},
        {"similarity.name": "cosine"},
        {"decoding.name": "mutual"},
        {"search.name": "cells"},
    ],
)
@pytest.mark.parametrize("kind", [{}, NEURAL])
def test_other_seeds_and_decodings_stand_for_nothing(
    kind: dict[str, Any], other: dict[str, Any]
) -> None:
    method = RREA if kind else EMEA
    assert on_zh([made(params=COMMON, **kind)], method)
    assert on_zh([made(params=COMMON | other, **kind)], method) == {}


@pytest.mark.parametrize(("name", "found"), [("csls", [0]), ("cosine", []), ("hungarian", [])])
def test_earlier_runs_name_their_similarity_as_decoding(name: str, found: list[int]) -> None:
    params = {key: value for key, value in COMMON.items() if key != "similarity.name"}
    assert list(on_zh([made(params=params | {"decoding.name": name})], EMEA)) == found


def test_what_all_runs_have_in_common_are_the_defaults() -> None:
    configured = defaults("data=zh")
    assert {key: configured[key] for key in COMMON} == COMMON


@pytest.mark.parametrize("turned", [False, True])
def test_of_several_runs_the_latest_counts(turned: bool) -> None:
    runs = [made("early", started=1), made("late", started=2)]
    assert on_zh(runs[::-1] if turned else runs, EMEA)[0].run.folder.name == "late"


def test_a_studys_own_runs_count_before_later_ones() -> None:
    own, later = made("own", Path("here"), started=1), made("later", Path("there"), started=2)
    for study, name in (("here", "own"), ("there", "later"), ("elsewhere", "later")):
        [found] = on_zh(seen_from([later, own], study), EMEA).values()
        assert found.run.folder.name == name


def test_the_first_source_that_has_the_split_counts() -> None:
    em = [made("em0", started=9), made("em1", started=9, split_seed=1)]
    found = on_zh([alone(0.2), *em], RREA)
    assert {split: (one.run.folder.name, one.stage) for split, one in found.items()} == {
        0: ("alone", "final"),
        1: ("em1", "initial"),
    }
    assert [one.value("hit@1") for one in found.values()] == [0.2, 0.1234]


def test_the_first_model_of_an_em_run_is_told_by_that_run() -> None:
    semi = {"training": "semi", "initial": scores(0.3)}
    runs = [alone(0.2, training="semi", started=9), made(protocol="released", **semi)]
    assert on_zh(runs, RREA_SEMI, "released")[0].value("hit@1") == 0.3
    # EM under another protocol is another run, but a model alone is the same under each
    assert on_zh(runs, RREA_SEMI, "strict")[0].value("hit@1") == 0.2


@pytest.mark.parametrize("of_run", ["strict", "released"])
@pytest.mark.parametrize("asked", ["strict", "released"])
def test_a_model_alone_counts_under_any_protocol(of_run: str, asked: str) -> None:
    run = alone(0.2, protocol=of_run, params={"em.iterations": 0})
    assert list(on_zh([run], RREA, asked)) == [0]


def test_reasoning_stands_for_itself() -> None:
    runs = [reasoned("paris", 0.3), reasoned("prase", 0.4)]
    assert on_zh(runs, PARIS)[0].value("hit@1") == 0.3
    assert on_zh(runs, PRASE)[0].value("hit@1") == 0.4
    assert on_zh(runs, PRASE)[0].value("mrr") is None


@pytest.mark.parametrize("setting", USUAL)
def test_runs_that_vary_the_usual_do_not_stand_for_it(setting: str) -> None:
    assert on_zh([made(params=USUAL)], EMEA)
    assert on_zh([made(params=USUAL | {setting: "something else"})], EMEA) == {}


@pytest.mark.parametrize("part", [None, *DUAL_PARTS, "em.iterations", "em.two_way.max_candidates"])
def test_ablations_do_not_stand_for_the_whole(part: str | None) -> None:
    params = DUAL_PARTS | ({part: "something else"} if part else {})
    found = on_zh([made(em="dual", params=params)], DUAL)
    assert bool(found) is (part is None)


def test_the_whole_is_what_em_dual_does_by_default() -> None:
    configured = defaults("em=dual")
    assert {key: configured[key] for key in DUAL_PARTS} == DUAL_PARTS
    beside = [f"em.two_way.{name}" for name in ("tolerance", "max_candidates", "ridge")]
    assert [configured[key] for key in beside] == [USUAL[key] for key in beside]
    settings = {key for key in configured if key.startswith("em.two_way.")}
    assert settings - {f"em.two_way.{name}" for name in NOT_PARTS} == set(DUAL_PARTS)


@pytest.mark.parametrize("rule", ["paris", "avoid_conflict", "paris_avoid_conflict"])
def test_the_usual_settings_are_the_defaults(rule: str) -> None:
    configured = defaults(f"rule={rule}")
    found = {key: configured[key] for key in USUAL if key in configured}
    assert found.items() <= USUAL.items()
    assert {"em.iterations", "em.num_candidates"} <= set(found)
    # N of AvoidConf has another name in each set of rules
    assert any("num_neighbours" in key for key in found) is ("avoid_conflict" in rule)
