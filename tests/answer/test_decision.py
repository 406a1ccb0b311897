"""Every way of answering through whole runs: the file and the numbers say the same."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from omegaconf import DictConfig
from scipy.stats import binomtest

from emea.answer.decision import Reach
from emea.config.composition import composed, option_names
from emea.config.run_config import RunConfig
from emea.data.split import Split
from emea.errors import ConfigError
from emea.record.pair_file import load_pair
from emea.run.building import draw_split
from emea.run.job import run_job

from ..small_runs import TINY

Configs = Callable[..., DictConfig]
Answer = dict[int, tuple[int, float]]

DECODINGS = option_names("decoding")
ONE_TO_ONE = {"one_to_one", "mutual", "hungarian"}
"""Those that give no target twice, and leave entities unmatched for it."""


def alignment(folder: Path) -> Answer:
    lines = (folder / "alignment.tsv").read_text().splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return {
        int(source): (int(target), float(prob)) for source, target, prob, *_ in rows
    }


def written_metrics(folder: Path) -> dict:
    metrics: dict = json.loads((folder / "metrics.json").read_text())
    return metrics


def check_answer(metrics: dict, found: Answer, split: Split, size: int) -> None:
    known = {*split.supervision.train[:, 0], *split.supervision.validation[:, 0]}
    judged = {source: pair for source, pair in found.items() if source not in known}
    right = sum(judged.get(source, (-1,))[0] == target for source, target in split.test)
    answer = metrics["answer"]
    assert answer["num_predicted"] == len(judged)
    assert answer["num_unmatched"] == size - len(known) - len(judged)
    assert answer["hit@1"] == answer["recall"] == pytest.approx(right / len(split.test))
    assert answer["precision"] == pytest.approx(right / len(judged))
    assert 0.1 < answer["f1"] < 1


def check_calibration(metrics: dict, found: Answer, split: Split) -> None:
    calibration = metrics["calibration"]
    asked = [(source, target) for source, target in split.test if source in found]
    assert calibration["num_entities"] == len(asked)
    assert calibration["num_unmatched"] == len(split.test) - len(asked)
    assert 0 <= calibration["ece"] <= 1
    bins = calibration["bins"]
    assert sum(row["num_entities"] for row in bins) == len(asked)
    said = sum(row["num_entities"] * row["mean_prob"] for row in bins)
    assert said == pytest.approx(sum(found[source][1] for source, _ in asked), abs=1e-3)
    came_true = sum(row["num_entities"] * row["accuracy"] for row in bins)
    assert came_true == pytest.approx(sum(found[s][0] == target for s, target in asked))


def config_of(decoding: str) -> DictConfig:
    epochs = ("model.initial_epochs=12", "model.epochs_per_iteration=4")
    options = (f"decoding={decoding}", "em.iterations=1", "model.encoder.dim=16")
    return composed([*TINY, *epochs, *options])


@pytest.fixture(scope="module")
def folder_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a finished run of a way of decoding, which runs when it is first needed."""

    @cache
    def made(decoding: str) -> Path:
        folder = tmp_path_factory.mktemp(decoding)
        run_job(config_of(decoding), folder)
        return folder

    return made


@pytest.mark.parametrize("decoding", DECODINGS)
def test_file_and_numbers_agree(
    decoding: str, folder_of: Callable[[str], Path]
) -> None:
    config, folder = config_of(decoding), folder_of(decoding)
    metrics, found = written_metrics(folder), alignment(folder)
    pair = load_pair(config)
    split, size = draw_split(RunConfig.of(config), pair), pair.source.num_entities
    assert metrics["decoding"] == metrics["answer"]["decoder"] == decoding
    assert metrics["similarity"] == "csls"
    check_answer(metrics, found, split, size)
    check_calibration(metrics, found, split)
    assert all(
        found[source] == (target, 1.0) for source, target in split.supervision.train
    )
    assert (len(found) < size) is (decoding in ONE_TO_ONE)
    num_targets = len({target for target, _ in found.values()})
    assert (num_targets == len(found)) is (decoding in ONE_TO_ONE)


@pytest.mark.parametrize(
    ("options", "decoder"),
    [
        (("method=paris",), "none"),
        (("method=paris", "decoding=hungarian"), "none"),
        (("method=prase",), "one_to_one"),
        (("method=prase", "decoding=mutual"), "mutual"),
        (("method=prase", "decoding=sinkhorn"), "sinkhorn"),
    ],
)
def test_the_matching_of_a_baseline_is_its_answer(
    options: tuple[str, ...], decoder: str, tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config(*options, "model.initial_epochs=5")
    run_job(config, tmp_path)
    metrics, found = written_metrics(tmp_path), alignment(tmp_path)
    pair = load_pair(config)
    split = draw_split(RunConfig.of(config), pair)
    assert metrics["answer"]["decoder"] == decoder
    assert len(found) == metrics["history"][-1]["num_pairs"]
    assert metrics["answer"].items() >= metrics["mapping"]["all"].items()
    check_answer(metrics, found, split, pair.source.num_entities)
    check_calibration(metrics, found, split)


def test_refused_settings_are_reported_before_training(
    tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config("decoding=hungarian", "+decoding.width=2")
    with pytest.raises(
        ConfigError, match=r"HungarianAnswer does not accept its settings: .*width"
    ):
        run_job(config, tmp_path)
    assert not (tmp_path / "checkpoint.safetensors").exists()


@pytest.mark.parametrize(
    ("num_links", "num_judged", "num_right", "expected"),
    [
        (29, 29, 29, True),  # 29 right links confirm .9, since .05 ** (1 / 29) > .9
        (28, 28, 28, False),  # 28 do not
        (29, 29, 27, False),  # the lower bound is .80
        (100, 100, 96, True),
        (100, 100, 94, False),
        (0, 0, 0, False),
    ],
)
def test_when_links_confirm_a_target(
    num_links: int, num_judged: int, num_right: int, expected: bool
) -> None:
    # all other entities have a counterpart and a match
    reach = Reach(0.9, 0.8, num_links, num_judged, num_right, 50, 50, 1.0)
    assert reach.is_confirmed is expected
    assert not replace(reach, threshold=math.inf).is_confirmed
    assert not replace(reach, least_share=None).is_confirmed


def test_links_that_can_just_confirm_a_target_do() -> None:
    target = Reach(0.9, 0.5, 30, 30, 30).confirmable
    assert Reach(target, 0.5, 30, 30, 30, 50, 50, 1.0).is_confirmed


def test_matches_of_entities_without_a_counterpart_lower_the_bound() -> None:
    # 1000 entities, of which at least half have a counterpart, which is found for 96 of 100
    reach = Reach(0.9, 0.8, 100, 100, 96, 1000, 500, 0.5)
    low = float(binomtest(96, 100, alternative="greater").proportion_ci(0.95).low)
    assert reach.precision_low == pytest.approx(low)
    more = replace(reach, num_accepted=600)
    assert more.precision_low == pytest.approx(low * 500 / 600)
    # links have no match for such an entity, so they are a limit
    fewer = replace(reach, num_accepted=100)
    assert fewer.precision_low == pytest.approx(low)
    assert math.isnan(replace(reach, least_share=None).precision_low)
