"""Spellings of earlier versions, on command lines and in the configs of their runs."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from emea.config import earlier
from emea.config.command_line import check_overrides
from emea.config.composition import composed
from emea.config.earlier import MOVED, current_decoding, current_overrides, current_settings
from emea.errors import ConfigError
from emea.record.run_folder import read_config

EXAMPLE = Path(__file__).resolve().parents[2] / "docs" / "examples" / "records" / "worked_example"


@pytest.fixture(autouse=True)
def _new_warnings() -> Iterator[None]:
    earlier._warn.cache_clear()
    yield
    earlier._warn.cache_clear()


def test_an_earlier_run_names_classes_where_they_were() -> None:
    earlier = {
        "search": {"_target_": "emea.matching.exact_search.ExactSearch"},
        "rules": [{"_target_": "emea.rules.composed.Composed", "name": "both"}],
        "model": {"_target_": "emea.encoders.rrea.RREA", "dim": 3},
    }
    assert current_settings(earlier) == {
        "search": {"_target_": "emea.matching.search.ExactSearch"},
        "rules": [{"_target_": "emea.rules.rule.Composed", "name": "both"}],
        "model": earlier["model"],
    }


@pytest.mark.parametrize("place", MOVED.values())
def test_a_class_that_moved_has_a_module(place: str) -> None:
    assert find_spec(place) is not None


@pytest.mark.parametrize(
    ("typed", "current"),
    [
        ("decoding=csls", "similarity=csls decoding=greedy"),
        ("decoding=cosine", "similarity=cosine decoding=greedy"),
        ("decoding=csls,cosine", "similarity=csls,cosine decoding=greedy"),
        ("decoding=choice(csls,mutual)", "similarity=csls decoding=greedy,mutual"),
        ("decoding.k=5", "similarity.k=5"),
        ("decoding.answer.unmatched_prob=0.4", "decoding.unmatched_prob=0.4"),
        ("+decoding.answer.width=2", "+decoding.width=2"),
    ],
)
def test_an_earlier_spelling_works_with_a_warning(
    typed: str, current: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert current_overrides(["-m", typed, "seed=1"]) == ["-m", *current.split(), "seed=1"]
    current_overrides([typed])
    assert caplog.messages == [f"{typed} is deprecated. Use {current}"]


@pytest.mark.parametrize(
    "typed",
    ["decoding=hungarian", "decoding=mutual,sinkhorn", "decoding={", "decodings=csls"],
)
def test_other_spellings_stay(typed: str, caplog: pytest.LogCaptureFixture) -> None:
    assert current_overrides([typed]) == [typed]
    assert not caplog.messages


def test_an_earlier_spelling_without_equivalent_is_refused() -> None:
    with pytest.raises(ConfigError, match="mixes similarities and decodings"):
        current_overrides(["decoding=cosine,hungarian"])
    with pytest.raises(ConfigError, match="conflicts with similarity"):
        current_overrides(["similarity=cosine", "decoding=csls"])


def test_an_earlier_command_line_composes_the_same() -> None:
    check_overrides(["-m", "decoding=csls,cosine", "seed=0,1"])
    assert composed(["decoding=csls"]) == composed([])
    old = composed(["decoding=hungarian", "decoding.k=5", "decoding.answer.unmatched_prob=0.4"])
    assert (old.similarity.name, old.similarity.k) == ("csls", 5)
    assert (old.decoding.name, old.decoding.unmatched_prob) == ("hungarian", 0.4)


def test_earlier_names_answer_greedily(caplog: pytest.LogCaptureFixture) -> None:
    assert [current_decoding(name) for name in ("csls", "cosine", "mutual")] == [
        "greedy",
        "greedy",
        "mutual",
    ]
    assert len(caplog.messages) == 2


def test_the_config_of_an_earlier_run_gets_both_groups() -> None:
    stored = OmegaConf.load(EXAMPLE / "config.yaml")
    assert "similarity" not in stored
    config, today = read_config(EXAMPLE), composed([])
    assert config.decoding == today.decoding
    assert config.similarity == today.similarity
    assert config.method.uses == today.method.uses


def test_an_earlier_run_keeps_its_own_answer() -> None:
    answer = {"_target_": "emea.matching.hungarian_answer.HungarianAnswer", "unmatched_prob": 0.4}
    csls = {"name": "hungarian", "_target_": "emea.matching.csls.CSLS", "k": 5}
    current = current_settings({"decoding": csls | {"answer": answer}})
    today = composed(["decoding=hungarian", "decoding.unmatched_prob=0.4", "similarity.k=5"])
    assert current == {"decoding": today.decoding, "similarity": today.similarity}


def test_an_earlier_run_without_an_answer_is_greedy() -> None:
    cosine = {"name": "cosine", "_target_": "emea.matching.cosine.Cosine"}
    current = current_settings({"decoding": cosine | {"answer": None}, "method": {"uses": []}})
    assert current["similarity"] == composed(["similarity=cosine"]).similarity
    assert current["decoding"] == composed([]).decoding
    assert current["method"] == {"uses": []}
    assert current_settings(current) == current


def test_search_in_cells_is_called_kmeans(caplog: pytest.LogCaptureFixture) -> None:
    overrides = ["search=exact,cells", "search.num_probes=4"]
    assert current_overrides(overrides) == ["search=exact,kmeans", "search.num_probes=4"]
    assert "search=exact,cells is deprecated. Use search=exact,kmeans" in caplog.text
    assert composed(["search=cells"]) == composed(["search=kmeans"])
    for module in ("search", "cells"):
        stored = {"search": {"_target_": f"emea.matching.{module}.CellSearch"}}
        target = composed(["search=kmeans"]).search._target_
        assert current_settings(stored)["search"] == {"_target_": target}
