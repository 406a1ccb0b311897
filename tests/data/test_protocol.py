"""What each protocol lets a run see."""

import logging
from dataclasses import fields, replace

import numpy as np
import pytest

from emea.data.arrays import IntArray
from emea.data.protocol import (
    Released,
    Strict,
    Visible,
    WithinTestPool,
    answer_pool,
    seen_links,
)
from emea.data.split import Split, Supervision
from emea.errors import ConfigError

LINKS = np.stack([np.arange(300), 299 - np.arange(300)], axis=1)
TRAIN, VALIDATION, TEST = LINKS[:30], LINKS[30:50], LINKS[50:]


def split(test: IntArray = TEST) -> Split:
    return Split(Supervision(TRAIN, VALIDATION), test)


def as_set(links: IntArray) -> set[tuple[int, int]]:
    return {(source, target) for source, target in links.tolist()}


def assert_same(one: Visible, other: Visible) -> None:
    for field in fields(Visible):
        first, second = getattr(one, field.name), getattr(other, field.name)
        if isinstance(first, np.ndarray):
            np.testing.assert_array_equal(first, second, err_msg=field.name)
        else:
            assert first == second, field.name


@pytest.mark.parametrize(
    "test",
    [
        TEST[::-1],
        TEST[:0],
        TEST[:7],
        np.stack([TEST[:, 0], np.roll(TEST[:, 1], 1)], axis=1),
    ],
    ids=["reordered", "deleted", "fewer", "permuted"],
)
def test_strict_does_not_depend_on_test_links(test: IntArray) -> None:
    assert_same(Strict()(split()), Strict()(split(test)))


def test_strict_shows_the_labels(caplog: pytest.LogCaptureFixture) -> None:
    visible = Strict()(split())
    np.testing.assert_array_equal(visible.train, TRAIN)
    np.testing.assert_array_equal(visible.validation, VALIDATION)
    np.testing.assert_array_equal(visible.normaliser_links, VALIDATION)
    assert as_set(visible.weight_links) == as_set(TRAIN) | as_set(VALIDATION)
    assert visible.unseen_links is None
    assert visible.relation_links is None
    assert visible.label_pool is None
    assert visible.mining_sources is None
    assert visible.mining_targets is None
    assert not visible.uses_test_links
    assert not caplog.records


def test_crossed_links_fit_no_normaliser_and_are_certain_for_nobody() -> None:
    # each of them trains an encoder, so none is free of the training
    crossed = Strict()(Split(Supervision(TRAIN, VALIDATION).crossed(), TEST))
    known = as_set(TRAIN) | as_set(VALIDATION)
    assert as_set(crossed.train) == as_set(crossed.validation) == known
    assert not len(crossed.normaliser_links)
    assert not len(crossed.held_out) and not len(crossed.certain)
    assert as_set(crossed.weight_links) == known
    plain = Strict()(split())
    assert as_set(plain.held_out) == as_set(VALIDATION) and as_set(
        plain.certain
    ) == as_set(TRAIN)


@pytest.mark.parametrize("is_crossed", [True, False], ids=["crossed", "in folds"])
def test_each_of_several_encoders_holds_out_another_fold(is_crossed: bool) -> None:
    supervision = Supervision(TRAIN, VALIDATION)
    visible = Strict()(
        Split(supervision.crossed() if is_crossed else supervision, TEST)
    )
    assert visible.of_members(3) == [visible] * 3 or is_crossed
    visible = replace(visible, in_folds=not is_crossed)
    always = as_set(visible.held_out)
    views = visible.of_members(3)
    folds = [as_set(view.validation) - always for view in views]
    for view, fold in zip(views, folds, strict=True):
        assert as_set(view.train) == as_set(visible.train) - fold
        assert always <= as_set(view.validation)
        assert abs(len(fold) - len(visible.train) / 3) < 1
    assert set().union(*folds) == as_set(visible.train)
    assert sum(map(len, folds)) == len(visible.train)


def test_released_shows_test_links() -> None:
    visible = Released()(split())
    np.testing.assert_array_equal(visible.train, TRAIN)
    np.testing.assert_array_equal(visible.validation, VALIDATION)
    np.testing.assert_array_equal(visible.weight_links, TRAIN)
    assert visible.relation_links is not None
    assert visible.label_pool is not None
    assert len(visible.relation_links) == len(LINKS)
    assert as_set(visible.relation_links) == as_set(LINKS)
    assert set(visible.label_pool.tolist()) == set(TEST[:, 0].tolist())
    assert visible.mining_sources is not None
    assert visible.mining_targets is not None
    assert set(visible.mining_sources.tolist()) == set(TEST[:, 0].tolist())
    assert set(visible.mining_targets.tolist()) == set(TEST[:, 1].tolist())
    assert visible.uses_test_links


@pytest.mark.parametrize("protocol", [Strict(), Released()])
def test_links_for_early_stopping_are_not_trained_on(
    protocol: Strict | Released,
) -> None:
    visible = protocol(split())
    assert visible.encoder_links is visible.train
    held = visible.holding_out(0.2, seed=3)
    assert held.stopping_links is not None
    assert len(held.stopping_links) == len(TRAIN) // 5
    assert as_set(held.stopping_links) | as_set(held.encoder_links) == as_set(TRAIN)
    assert not as_set(held.stopping_links) & as_set(held.encoder_links)
    np.testing.assert_array_equal(held.train, TRAIN)
    again, other = visible.holding_out(0.2, seed=3), visible.holding_out(0.2, seed=4)
    assert again.stopping_links is not None and other.stopping_links is not None
    assert as_set(again.stopping_links) == as_set(held.stopping_links)
    assert as_set(other.stopping_links) != as_set(held.stopping_links)


def test_released_fits_the_normaliser_on_random_test_links() -> None:
    drawn = as_set(Released(seed=1)(split()).normaliser_links)
    assert len(drawn) == 100
    assert drawn <= as_set(TEST)
    assert drawn != as_set(TEST[:100])
    assert drawn == as_set(Released(seed=1)(split()).normaliser_links)
    assert drawn != as_set(Released(seed=2)(split()).normaliser_links)
    assert as_set(Released()(split(TEST[:7])).normaliser_links) == as_set(TEST[:7])


def test_released_has_test_links_for_rules_that_ask_for_unseen_ones() -> None:
    visible = Released()(split())
    assert visible.unseen_links is not None
    unseen = as_set(visible.unseen_links)
    assert len(unseen) == 100
    assert unseen <= as_set(TEST)
    assert not unseen & as_set(visible.normaliser_links)


def test_released_warns_once(caplog: pytest.LogCaptureFixture) -> None:
    Released()(split())
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "TEST links" in record.getMessage()


def test_within_the_test_pool_only_the_answer_knows_test_entities(
    caplog: pytest.LogCaptureFixture,
) -> None:
    visible = WithinTestPool()(split())
    assert visible.uses_test_links
    assert_same(replace(visible, uses_test_links=False), Strict()(split()))
    assert "matches only entities of the 250 TEST links" in caplog.text
    assert seen_links("test_pool") == "KNEW which entities have test links"
    pool = answer_pool("test_pool", split())
    assert pool is not None
    np.testing.assert_array_equal(pool[0], TEST[:, 0])
    np.testing.assert_array_equal(pool[1], TEST[:, 1])
    assert answer_pool("strict", split()) is None
    assert answer_pool("released", split()) is None


def test_without_test_links_there_is_no_test_pool() -> None:
    with pytest.raises(ConfigError, match="Use protocol=strict"):
        WithinTestPool()(split(TEST[:0]))
