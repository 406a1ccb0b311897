"""Mined labels against a loop, and what carries over between turns."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from emea.data.arrays import IntArray
from emea.data.protocol import Visible
from emea.fit.alignment_module import AlignmentModule
from emea.fit.self_training import SelfTraining
from emea.fit.step_block import LabelDataModule, Labels
from emea.matching.csls import CSLS

Modules = Callable[..., AlignmentModule]
Visibles = Callable[..., Visible]

SOURCE_POOL = np.array([11, 2, 5, 7, 9, 13, 4])
TARGET_POOL = np.array([9, 1, 4, 10, 0, 6])


def looped(
    module: AlignmentModule,
    labels: IntArray,
    sources: list[int],
    targets: list[int],
    k: int,
) -> list[list[int]]:
    """Mutual nearest pairs by CSLS inside the pool, one entity at a time, in float64."""
    source, target = (normalize(rows.detach().double()) for rows in module.embeddings())
    left = sorted(set(sources) - set(labels[:, 0].tolist()))
    right = sorted(set(targets) - set(labels[:, 1].tolist()))
    cosine = {(s, t): float(source[s] @ target[t]) for s in left for t in right}

    def nearest(scores: list[float]) -> float:
        best = sorted(scores, reverse=True)[:k]
        return sum(best) / len(best)

    of_source = {s: nearest([cosine[s, t] for t in right]) for s in left}
    of_target = {t: nearest([cosine[s, t] for s in left]) for t in right}
    csls = {(s, t): 2 * cosine[s, t] - of_source[s] - of_target[t] for s, t in cosine}
    pairs = []
    for s in left:
        t = max(right, key=lambda other: csls[s, other])
        if max(left, key=lambda other: csls[other, t]) == s:
            pairs.append([s, t])
    return pairs


@pytest.mark.parametrize("restricted", [False, True])
def test_mined_pairs_are_those_of_a_loop(
    restricted: bool, make_module: Modules, make_visible: Visibles
) -> None:
    pools: dict[str, Any] = {}
    sources, targets = list(range(14)), list(range(11))
    if restricted:
        pools = {"mining_sources": SOURCE_POOL, "mining_targets": TARGET_POOL}
        sources, targets = SOURCE_POOL.tolist(), TARGET_POOL.tolist()
    visible = make_visible(**pools)
    module = make_module()
    mined = SelfTraining(visible, CSLS(k=3), turns=1).mined(module, visible.train)
    assert len(mined) > 1
    assert mined.tolist() == looped(module, visible.train, sources, targets, k=3)


def test_held_out_links_are_not_mined(
    make_module: Modules, make_visible: Visibles
) -> None:
    # the encoder trains on the first link only; the others are held out for early stopping
    visible = make_visible()
    module = make_module()
    mined = SelfTraining(visible, CSLS(k=3), turns=1).mined(module, visible.train[:1])
    assert len(visible.train) > 1
    assert mined.tolist() == looped(
        module, visible.train, list(range(14)), list(range(11)), k=3
    )


@pytest.mark.parametrize("side", ["mining_sources", "mining_targets"])
def test_an_empty_pool_gives_no_pair(
    side: str, make_module: Modules, make_visible: Visibles
) -> None:
    visible = make_visible(**{side: np.zeros(0, dtype=np.int64)})
    mined = SelfTraining(visible, CSLS(), turns=1).mined(make_module(), visible.train)
    assert mined.shape == (0, 2)


def test_the_order_of_a_pool_has_no_effect(
    make_module: Modules, make_visible: Visibles
) -> None:
    module = make_module()
    module.encoder.rows.data[:] = 1.0  # all scores tie
    results = []
    for order in (1, -1):
        pools = {
            "mining_sources": SOURCE_POOL[::order],
            "mining_targets": TARGET_POOL[::order],
        }
        visible = make_visible(**pools)
        mined = SelfTraining(visible, CSLS(k=2), turns=1).mined(module, visible.train)
        results.append(mined.tolist())
    assert len(results[0]) == 1
    assert results[0] == results[1]


def test_turns_add_labels_and_keep_the_optimiser(
    make_module: Modules, make_visible: Visibles, fit: Callable[..., LabelDataModule]
) -> None:
    visible = make_visible()
    module = make_module()
    data = fit(
        module,
        visible,
        4,
        [SelfTraining(visible, CSLS(k=3), 2, epochs_per_turn=5)],
        num_turns=2,
    )
    # the same by hand: one optimiser, labels that only grow
    twin = make_module()
    optimizers = twin.configure_optimizers()
    labels, num_steps = visible.train, 0
    for turn, num_epochs in enumerate([4, 5, 5]):
        if turn:
            mined = looped(twin, labels, list(range(14)), list(range(11)), k=3)
            labels = np.concatenate(
                [labels, np.array(mined, dtype=np.int64).reshape(-1, 2)]
            )
        links = torch.from_numpy(labels + np.array([0, 14]))
        step = twin.new_step([Labels(links)], optimizers)
        for _ in range(num_epochs * (1 + len(labels) // 10)):
            step()
            num_steps += 1
    assert len(labels) > len(visible.train) + 2
    assert data.labels.tolist() == labels.tolist()
    assert module.num_steps_done == num_steps
    assert module.num_epochs_done == pytest.approx(14)
    torch.testing.assert_close(module.encoder.rows, twin.encoder.rows, rtol=0, atol=0)


def test_no_entity_is_labelled_twice(
    make_module: Modules, make_visible: Visibles, fit: Callable[..., LabelDataModule]
) -> None:
    visible = make_visible()
    training = SelfTraining(visible, CSLS(k=3), 3, epochs_per_turn=2)
    data = fit(make_module(), visible, 2, [training], num_turns=3)
    for side in data.labels.T:
        assert len(set(side.tolist())) == len(side)


def test_without_turns_labels_stay(
    make_module: Modules, make_visible: Visibles, fit: Callable[..., LabelDataModule]
) -> None:
    visible = make_visible()
    data = fit(make_module(), visible, 3, [SelfTraining(visible, CSLS(), turns=0)])
    assert data.labels.tolist() == visible.train.tolist()
