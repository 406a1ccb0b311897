"""Whole runs of em=dual, with and without its parts."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import DictConfig
from safetensors.torch import load_file

from emea.config.composition import option_names
from emea.errors import ConfigError
from emea.record.pair_file import load_pair
from emea.run.job import run_job

from ..em.aligned_pairs import ALL_OFF
from ..small_runs import tiny_config_of

Configs = Callable[..., DictConfig]

SHORT = (
    "data.num_entities=100",
    "model.initial_epochs=5",
    "model.epochs_per_iteration=2",
)
OTHER_RULES = [rule for rule in option_names("rule") if rule not in ("none", "paris")]


def timeless(node: Any) -> Any:
    """Metrics without what differs from run to run: times, the option's name, the folder."""
    if isinstance(node, dict):
        dropped = ("seconds", "peak_memory_mb", "em", "folder")
        return {
            key: timeless(value) for key, value in node.items() if key not in dropped
        }
    return [timeless(value) for value in node] if isinstance(node, list) else node


def test_without_the_two_way_step_it_is_the_paper(
    tiny_config: Configs, tmp_path: Path
) -> None:
    shared = (*SHORT, "em.iterations=1", "em.num_candidates=10")
    paper = run_job(tiny_config("em=paper", *shared), tmp_path / "paper").metrics
    config = tiny_config("em=dual", *shared)
    config.em.two_way = None
    dual = run_job(config, tmp_path / "dual").metrics
    assert (paper["em"], dual["em"]) == ("paper", "dual")
    assert timeless(dual) == timeless(paper)
    folders = (tmp_path / "paper", tmp_path / "dual")
    alignments = [(folder / "alignment.tsv").read_bytes() for folder in folders]
    assert alignments[0] == alignments[1]
    for name in ("ranks.npz", "beliefs.npz"):
        one, other = (np.load(folder / name) for folder in folders)
        assert set(one) == set(other)
        assert all(np.array_equal(one[key], other[key]) for key in one)
    one, other = (load_file(folder / "checkpoint.safetensors") for folder in folders)
    assert set(one) == set(other)
    assert all(torch.equal(one[key], other[key]) for key in one)


@pytest.fixture(scope="module")
def short_config() -> DictConfig:
    """Composed once: that takes as long as the run."""
    # the answer is the ranking, which decoding=one_to_one would thin out
    return tiny_config_of(*SHORT, "em=dual", "em.iterations=1", "decoding=greedy")


@pytest.fixture(scope="module")
def short_run(
    short_config: DictConfig, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The folder of its run."""
    folder = tmp_path_factory.mktemp("short") / "run"
    run_job(short_config, folder)
    return folder


def metrics_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "metrics.json").read_text())
    return found


@pytest.mark.parametrize(
    "part",
    [
        pytest.param(
            part, marks=() if part in ("features", "fused_answer") else pytest.mark.slow
        )
        for part in ALL_OFF
    ],
)
def test_any_single_part_can_be_off(
    part: str, short_config: DictConfig, tmp_path: Path
) -> None:
    config = copy.deepcopy(short_config)
    config.em.two_way[part] = ALL_OFF[part]
    metrics = run_job(config, tmp_path).metrics
    last = metrics["history"][-1]
    assert metrics["final"] == last["neural" if part == "fused_answer" else "joint"]
    assert last["neural"] != last["joint"]
    assert last["labels"]["num_labels"] > 0
    weights = load_file(tmp_path / "checkpoint.safetensors").get("link_weights")
    assert (weights is None) is (part == "weighted_labels")


def test_it_lifts_a_model_above_itself(tiny_config: Configs, tmp_path: Path) -> None:
    alone = run_job(tiny_config("em=none"), tmp_path / "alone").metrics
    lifted = run_job(
        tiny_config("em=dual", "em.iterations=1"), tmp_path / "lifted"
    ).metrics
    assert lifted["initial"] == alone["final"]
    assert lifted["final"]["hit@1"] > alone["final"]["hit@1"] + 0.1
    assert lifted["final_reverse"]["hit@1"] > alone["final_reverse"]["hit@1"] + 0.1
    with np.load(tmp_path / "lifted" / "ranks.npz") as ranks:
        assert np.mean(ranks["final_in_pool"] <= 1) == lifted["final"]["hit@1"]


def test_the_answer_is_what_is_ranked_first(
    short_config: DictConfig, short_run: Path
) -> None:
    metrics = metrics_of(short_run)
    lines = (short_run / "alignment.tsv").read_text().splitlines()[1:]
    answers = {tuple(line.split("\t")[:2]) for line in lines}
    pair = load_pair(short_config)
    with np.load(short_run / "ranks.npz") as ranks:
        first = ranks["final_in_all"] == 1
        links = ranks["links"].tolist()
    named = [(pair.source.entity_name(s), pair.target.entity_name(t)) for s, t in links]
    assert [names in answers for names in named] == first.tolist()
    assert metrics["mapping"]["all"]["recall"] == pytest.approx(first.mean())
    assert (
        metrics["mapping"]["mutual"]["precision"]
        > metrics["mapping"]["all"]["precision"]
    )
    assert 0 < metrics["mapping"]["mutual"]["num_predicted"] < len(lines)


@pytest.mark.parametrize("rule", OTHER_RULES)
def test_another_rule_is_refused(
    rule: str, tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config("em=dual", f"rule={rule}", *SHORT)
    with pytest.raises(ConfigError, match="rule=paris"):
        run_job(config, tmp_path)
