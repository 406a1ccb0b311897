"""The wall between a strict run and the test links."""

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import DictConfig
from safetensors.torch import load_file

from emea.config.composition import option_names
from emea.config.run_config import RunConfig
from emea.data.graph_pair import relabel_links
from emea.data.split import Split, Supervision
from emea.em.propagation import Propagation
from emea.encoders.light_ea import LightEA
from emea.encoders.rrea import MarginObjective
from emea.encoders.settings import MarginSettings
from emea.record.pair_file import load_pair
from emea.run import em_run, job
from emea.run.building import BuiltRun, build_run, draw_split
from emea.run.job import run_job
from emea.run.observer import flattened

Configs = Callable[..., DictConfig]

Answer = tuple[bytes, ...]

FILES = ("alignment.tsv", "checkpoint.safetensors", "beliefs.npz")
MODELS = option_names("model")
RULES = [rule for rule in option_names("rule") if rule != "none"]
TRAININGS = option_names("training")
USUAL = {("rrea", "paris_avoid_conflict", "semi"), ("lightea", "paris", "sup")}
COMBINATIONS = [
    pytest.param(*chosen, marks=() if chosen in USUAL else pytest.mark.slow)
    for chosen in itertools.product(MODELS, RULES, TRAININGS)
    if chosen[0] == "rrea"
    or chosen[1] == "paris"  # models and rules do not know each other
]


def permuted_targets(split: Split) -> Split:
    test = split.test.copy()
    test[:, 1] = np.random.default_rng(1).permutation(test[:, 1])
    assert not np.array_equal(test, split.test)
    return replace(split, test=test)


def without_test_links(split: Split) -> Split:
    return replace(split, test=split.test[:0])


def predictions(
    config: DictConfig,
    folder: Path,
    change: Callable[[Split], Split],
    monkeypatch: pytest.MonkeyPatch,
) -> Answer:
    with monkeypatch.context() as patch:
        pair = load_pair(config)
        split = change(draw_split(RunConfig.of(config), pair))
        known = split.supervision
        # the pair's own links change with the split: nothing may read them either
        links = np.concatenate([known.train, known.validation, split.test])
        patch.setattr(job, "load_pair", lambda _: replace(pair, links=links))
        patch.setattr(job, "draw_split", lambda *_: split)
        run_job(config, folder)
    return tuple((folder / name).read_bytes() for name in FILES)


def assert_wall(
    config: DictConfig, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Answer:
    """Check that no file with predictions depends on test links, and return their content."""
    original = predictions(config, folder / "a", lambda split: split, monkeypatch)
    for name, change in (("b", permuted_targets), ("c", without_test_links)):
        assert predictions(config, folder / name, change, monkeypatch) == original, name
    return original


@pytest.mark.parametrize(("model", "rule", "training"), COMBINATIONS)
def test_strict_predictions_do_not_depend_on_test_links(
    model: str,
    rule: str,
    training: str,
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = (
        f"model={model}",
        f"rule={rule}",
        f"training={training}",
        "data.num_entities=100",
    )
    config = tiny_config(*options, "em.iterations=2", *short())
    assert_wall(config, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "decoding",
    [
        pytest.param(one, marks=() if one == "hungarian" else pytest.mark.slow)
        for one in option_names("decoding")
    ],
)
def test_strict_answers_do_not_depend_on_test_links(
    decoding: str, tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config(f"decoding={decoding}", "em.iterations=1", *short())
    assert_wall(config, tmp_path, monkeypatch)


def test_a_strict_threshold_does_not_depend_on_test_links(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("em=none", "rule=none", "model.encoder.dim=100")
    config = tiny_config(*options, "export.target_precision=0.5")
    original = assert_wall(config, tmp_path, monkeypatch)
    assert 31 < original[0].count(b"\n") < 151  # more than the labels, fewer than all


@pytest.mark.parametrize(
    "options",
    [
        ("em=dual", "training=semi", "em.iterations=1"),
        pytest.param(
            (
                *("em=one_to_one", "ensemble=independent", "ensemble.num_members=2"),
                *("em.iterations=2", "ensemble.shared_fits=1"),
            ),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            (
                *(
                    "model=lightea",
                    "em=one_to_one",
                    "ensemble=independent",
                    "ensemble.folds=true",
                ),
                *("em.iterations=2", "ensemble.shared_fits=1", "model.encoder.dim=64"),
            ),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["two-way", "independent encoders", "encoders with folds"],
)
def test_joint_predictions_do_not_depend_on_test_links(
    options: tuple[str, ...],
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = tiny_config(*options, "data.num_entities=100", *short())
    assert_wall(config, tmp_path, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("one_to_one", [False, True])
@pytest.mark.parametrize("model", ["lightea", "rrea"])
def test_two_way_iterations_do_not_depend_on_test_links(
    model: str,
    one_to_one: bool,
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = (f"model={model}", "em=dual", "data.num_entities=400", "em.iterations=3")
    options += ("em.two_way.propagation=2", f"em.two_way.one_to_one={one_to_one}")
    config = tiny_config(*options, *short())
    calls: list[int] = []
    propagate = Propagation.__call__

    def counted(self: Propagation, *arguments: Any) -> Any:
        found = propagate(self, *arguments)
        calls.append(len(found[0]))
        return found

    monkeypatch.setattr(Propagation, "__call__", counted)
    assert_wall(config, tmp_path, monkeypatch)
    # two rounds of at least one of the four joint steps of each run, and pairs were found
    assert len(calls) > 12 and min(calls) > 0


@pytest.mark.parametrize("ensemble", ["none", "independent"])
def test_predictions_do_not_depend_on_entities_without_a_counterpart(
    ensemble: str, tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = (
        "model=lightea",
        "em=one_to_one",
        "em.iterations=1",
        f"ensemble={ensemble}",
    )
    config = tiny_config(
        *options, "data.num_entities=100", "export.target_precision=0.5"
    )
    original = predictions(config, tmp_path / "a", lambda split: split, monkeypatch)
    pair = load_pair(config)
    free = np.setdiff1d(np.arange(pair.source.num_entities), pair.links[:, 0])
    assert len(free) > 20
    run_job(config, tmp_path / "b", pair=replace(pair, unmatched=free[::2]))
    for name, content in zip(FILES, original, strict=True):
        assert (tmp_path / "b" / name).read_bytes() == content, name
    judged = [
        json.loads((tmp_path / name / "metrics.json").read_text()) for name in "ab"
    ]
    numbers = [one["sources"]["num_without_counterpart"] for one in judged]
    assert numbers == [0, len(free[::2])]


def short() -> tuple[str, ...]:
    epochs = ("model.initial_epochs=4", "model.epochs_per_iteration=2")
    return (*epochs, "++training.epochs_per_turn=2")


@pytest.mark.parametrize(
    "training", ["semi", pytest.param("sup", marks=pytest.mark.slow)]
)
def test_the_wall_test_sees_a_leak(
    training: str, tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("protocol=released", f"training={training}", "em.iterations=2")
    config = tiny_config(*options, *short())
    original = predictions(config, tmp_path / "a", lambda split: split, monkeypatch)
    changed = predictions(config, tmp_path / "b", permuted_targets, monkeypatch)
    assert original != changed


def fewer_test_links(split: Split) -> Split:
    return replace(split, test=split.test[: len(split.test) // 2])


@pytest.mark.parametrize("protocol", ["strict", "released"])
@pytest.mark.parametrize(
    "training", ["semi", pytest.param("sup", marks=pytest.mark.slow)]
)
def test_without_em_only_a_released_pool_changes_the_weights(
    protocol: str,
    training: str,
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # without EM, test links reach the weights through the pool of mined pairs or not at all
    options = (f"protocol={protocol}", f"training={training}", "em=none", "rule=none")
    config = tiny_config(*options, *short())
    for name, change in (("a", lambda split: split), ("b", fewer_test_links)):
        predictions(config, tmp_path / name, change, monkeypatch)
    weights = [load_file(tmp_path / name / "checkpoint.safetensors") for name in "ab"]
    names = [name for name in weights[0] if name.startswith("module.")]
    same = all(torch.equal(weights[0][name], weights[1][name]) for name in names)
    assert same is not (protocol == "released" and config.training.turns > 0)


class RelabelledObjective(MarginObjective):
    """Draws the same links and entities as the original graph's objective, by their new names."""

    def __init__(self, names: torch.Tensor, num_train: int) -> None:
        super().__init__(**vars(MarginSettings()))
        self.names = names
        self.num_train = num_train

    def forward(self, encoder: torch.nn.Module, links: torch.Tensor) -> torch.Tensor:
        rows = encoder()[self.names]
        links = torch.argsort(self.names)[links]
        # pseudo-labels come in the order of entity ids, which the relabelling has changed
        order = torch.arange(len(links))
        order[self.num_train :] = self.num_train + torch.argsort(
            links[self.num_train :, 0]
        )
        weights = self.link_weights
        self.weigh(None if weights is None else weights[order])
        loss = super().forward(lambda: rows, links[order])  # type: ignore[arg-type]
        self.weigh(weights)
        return loss


def seeds_by_new_name(encoder: LightEA, target_ids: np.ndarray) -> None:
    """Give every target entity the vector it had under its old name."""
    vectors = encoder.seed_vectors()
    renamed = torch.empty_like(vectors)
    renamed[torch.from_numpy(target_ids)] = vectors
    encoder.seed_vectors = lambda: renamed  # type: ignore[method-assign]


def double_parts(*arguments: Any, **named: Any) -> BuiltRun:
    parts = build_run(*arguments, **named)
    parts.module.double()
    return parts


EXACT_RREA, EXACT_LIGHTEA = (
    ("model=rrea", "model.encoder.dropout=0"),
    ("model=lightea",),
)
ONE_TO_ONE = (*EXACT_RREA, "em.two_way.one_to_one=true")
RELABELLED = [
    (EXACT_RREA, "paper", "paris_avoid_conflict", 1),
    (EXACT_RREA, "dual", "paris", 0),
    pytest.param(ONE_TO_ONE, "dual", "paris", 0, marks=pytest.mark.slow),
    *(
        pytest.param(model, "paper", rule, turns, marks=pytest.mark.slow)
        for model in (EXACT_RREA, EXACT_LIGHTEA)
        for rule, turns in itertools.product(RULES, (0, 1))
    ),
]


@pytest.mark.parametrize(("model", "em", "rule", "turns"), RELABELLED)
def test_relabelling_entities_changes_no_metric(
    model: tuple[str, ...],
    em: str,
    rule: str,
    turns: int,
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = (
        *model,
        f"em={em}",
        f"rule={rule}",
        "em.iterations=2",
        f"training.turns={turns}",
    )
    config = tiny_config(*options, *short())
    # in double precision, since RMSprop's first steps turn rounding errors into whole steps
    monkeypatch.setattr(em_run, "build_run", double_parts)
    original = run_job(config, tmp_path / "a").metrics
    pair = load_pair(config)
    split = draw_split(RunConfig.of(config), pair)
    known = split.supervision
    rng = np.random.default_rng(3)
    source_ids = rng.permutation(pair.source.num_entities)
    target_ids = rng.permutation(pair.target.num_entities)
    names = torch.from_numpy(np.concatenate([source_ids, len(source_ids) + target_ids]))

    def relabelled_parts(*given: Any, **named: Any) -> object:
        parts = double_parts(*given, **named)
        encoder = parts.module.encoder
        if isinstance(encoder, LightEA):
            seeds_by_new_name(encoder, target_ids)
            return parts
        encoder.entities.data[names] = encoder.entities.data.clone()
        parts.module.objective = RelabelledObjective(names, len(known.train))
        return parts

    def relabel(links: np.ndarray) -> np.ndarray:
        return relabel_links(links, source_ids, target_ids)

    moved = Split(
        Supervision(relabel(known.train), relabel(known.validation)),
        relabel(split.test),
    )
    monkeypatch.setattr(
        job, "load_pair", lambda _: pair.relabelled(source_ids, target_ids)
    )
    monkeypatch.setattr(job, "draw_split", lambda *_: moved)
    monkeypatch.setattr(em_run, "build_run", relabelled_parts)
    renamed = run_job(config, tmp_path / "b").metrics
    for stage in ("initial", "final"):
        both = flattened(original[stage]), flattened(renamed[stage])
        assert both[1] == pytest.approx(both[0], abs=1e-5), stage


def test_released_says_so_once(
    tiny_config: Configs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    metrics = run_job(
        tiny_config("protocol=released", "em.iterations=1"), tmp_path
    ).metrics
    assert metrics["protocol"] == "released"
    assert (
        sum("uses TEST links" in record.getMessage() for record in caplog.records) == 1
    )
