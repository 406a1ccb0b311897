"""The protocols, which decide which links a run may use."""

import logging
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from emea.data.arrays import IntArray, are_among
from emea.data.split import Split, are_crossed
from emea.errors import ConfigError

logger = logging.getLogger(__name__)


TEST_POOL = "test_pool"
"""Name of the protocol whose answers contain entities of test links only."""


def seen_links(protocol: str) -> str:
    """Describe whether test links may have affected a run's numbers.

    Tests verify that they did not only for ``strict``.
    """
    known = {
        "strict": "saw no test links",
        "released": "USED TEST LINKS in training",
        TEST_POOL: "KNEW which entities have test links",
    }
    return known.get(protocol, "MAY HAVE USED test links: a protocol of its own")


@dataclass(frozen=True, eq=False)
class Visible:
    """Holds the links that training and EM may use; they receive no other links.

    Args:
        train: Links that the encoder is trained on; their entities are labelled.
        validation: Held-out labels.
        normaliser_links: Links on which the normaliser is fitted.
        weight_links: Links on which rule weights are fitted.
        unseen_links: Links for rules whose weights must be fitted on links that the encoder has
            not seen. They have probability 1 in q, like the training links. With ``None``, such
            rules use ``weight_links``.
        relation_links: Links from which relation inclusions are estimated. With ``None`` they are
            estimated from the labels and the predictions of the model.
        label_pool: Source entities that may get a pseudo-label. ``None`` means all unlabelled ones.
        mining_sources: Source entities that semi-supervised training may pair. ``None`` means all
            unlabelled ones.
        mining_targets: Target entities that semi-supervised training may pair, likewise.
        stopping_links: Training links that the encoder is not trained on; early stopping uses them
            instead of the validation links. EM uses them like all other training links.
        uses_test_links: Whether any of these contains test links.
        rejected: ``[n, 2]`` pairs that a person rejected; ``None`` if there are none.
        in_folds: Whether independent encoders hold out folds although links are not crossed.

    Examples:
        >>> from emea.data.sources.synthetic import synthetic_pair
        >>> pair = synthetic_pair(num_entities=20)
        >>> train, test = pair.links[:5], pair.links[5:]
        >>> visible = Visible(train, test[:0], train, train, None, None, None, False)
        >>> len(visible.train), visible.is_crossed
        (5, False)
    """

    train: IntArray
    validation: IntArray
    normaliser_links: IntArray
    weight_links: IntArray
    unseen_links: IntArray | None
    relation_links: IntArray | None
    label_pool: IntArray | None
    uses_test_links: bool
    mining_sources: IntArray | None = None
    mining_targets: IntArray | None = None
    rejected: IntArray | None = None
    stopping_links: IntArray | None = None
    in_folds: bool = False

    @property
    def is_crossed(self) -> bool:
        """Whether each link is used for training and for validation."""
        return are_crossed(self.train, self.validation)

    def rejecting(self, pairs: IntArray | None) -> "Visible":
        """Return the same links without the pairs that a person rejected.

        Known links are never rejected. Only a protocol that uses test links can contain such pairs.

        Args:
            pairs: ``[n, 2]`` the rejected pairs; ``None`` if there are none.
        """
        if pairs is None or not len(pairs):
            return replace(self, rejected=pairs)
        parts = ("normaliser_links", "weight_links", "unseen_links", "relation_links")
        given = {name: getattr(self, name) for name in parts}
        kept = {
            name: links[~are_among(links, pairs)]
            for name, links in given.items()
            if links is not None
        }
        return replace(self, rejected=pairs, **kept)

    @property
    def has_folds(self) -> bool:
        """Whether each independent encoder holds out another fold of the training links."""
        return self.in_folds or self.is_crossed

    @property
    def held_out(self) -> IntArray:
        """Validation links that no encoder is trained on."""
        return self.validation[: 0 if self.is_crossed else None]

    @property
    def certain(self) -> IntArray:
        """Training links whose beliefs are not needed for validation."""
        return self.train[: 0 if self.is_crossed else None]

    def of_members(self, num_members: int) -> list["Visible"]:
        """Return the links of each independent encoder; its fold is for validation."""
        if not self.has_folds:
            return [self] * num_members
        held = self.held_out
        links = self.train
        folds = [
            np.arange(len(links)) % num_members == fold for fold in range(num_members)
        ]
        return [
            replace(
                self, train=links[~fold], validation=np.concatenate([held, links[fold]])
            )
            for fold in folds
        ]

    @property
    def encoder_links(self) -> IntArray:
        """Training links that the encoder is trained on."""
        if self.stopping_links is None:
            return self.train
        return self.train[~np.isin(self.train[:, 0], self.stopping_links[:, 0])]

    def holding_out(self, share: float, seed: int) -> "Visible":
        """Return the same links, of which a share of the training links is for early stopping."""
        order = np.random.default_rng(seed).permutation(len(self.train))
        return replace(
            self, stopping_links=self.train[order[: int(share * len(self.train))]]
        )


@dataclass(frozen=True)
class Strict:
    """Hides all test links: permuting or deleting them changes no prediction."""

    def __call__(self, split: Split) -> Visible:
        """Return what a run on this split may see."""
        known = split.supervision
        return Visible(
            train=known.train,
            validation=known.validation,
            normaliser_links=known.validation[: 0 if known.is_crossed else None],
            weight_links=np.concatenate([known.train, known.validation]),
            unseen_links=None,
            relation_links=None,
            label_pool=None,
            uses_test_links=False,
        )


@dataclass(frozen=True)
class WithinTestPool(Strict):
    """Trains as ``Strict``, but matches only entities of test links with each other.

    Many published results are found in this way. Each entity of the pool has exactly one
    counterpart in it, so a one-to-one inference profits from knowing the pool. Someone who aligns
    two graphs does not know it. ``answer_pool`` restricts the answer.
    """

    def __call__(self, split: Split) -> Visible:
        """Return what a run on this split may see.

        Raises:
            ConfigError: If there are no test links.
        """
        if not len(split.test):
            raise ConfigError(
                f"protocol={TEST_POOL} answers within the entities of test links, but there are "
                "none. Use protocol=strict."
            )
        logger.warning(
            "protocol=%s matches only entities of the %s TEST links with each other. Do not "
            "compare its answers with those of protocol=strict.",
            TEST_POOL,
            f"{len(split.test):,}",
        )
        return replace(super().__call__(split), uses_test_links=True)


def answer_pool(protocol: str, split: Split) -> tuple[IntArray, IntArray] | None:
    """Return the source and target entities that an answer can contain in addition to labels.

    Args:
        protocol: Name of the protocol; all but ``test_pool`` allow all entities (``None``).
        split: The split of the links.
    """
    if protocol != TEST_POOL:
        return None
    return split.test[:, 0], split.test[:, 1]


@dataclass(frozen=True)
class Released:
    """Follows the code released with the paper, which uses test links in training.

    Args:
        seed: Seed of the random choice of these links.
    """

    num_normaliser_links: ClassVar[int] = 100
    """Number of test links on which the normaliser is fitted."""

    num_unseen_links: ClassVar[int] = 100
    """Number of test links on which the weights of AvoidConf are fitted; they are labels in q."""

    seed: int = 0

    def __call__(self, split: Split) -> Visible:
        """Return what a run on this split may see.

        Raises:
            ConfigError: If there are no test links.
        """
        if not len(split.test):
            raise ConfigError(
                "protocol=released needs test links, but there are none. Use protocol=strict."
            )
        logger.warning(
            "protocol=released uses TEST links in training, as the paper's code did: relation "
            "inclusions from all links, the normaliser from %d of them, AvoidConf's weights from "
            "%d that it takes as labels, pseudo-labels and mined pairs for test entities only. "
            "Do not compare its numbers with protocol=strict.",
            self.num_normaliser_links,
            self.num_unseen_links,
        )
        known = split.supervision
        drawn = split.test[
            np.random.default_rng(self.seed).permutation(len(split.test))
        ]
        return Visible(
            train=known.train,
            validation=known.validation,
            normaliser_links=drawn[: self.num_normaliser_links],
            weight_links=known.train,
            unseen_links=drawn[::-1][: self.num_unseen_links],
            relation_links=np.concatenate([known.train, known.validation, split.test]),
            label_pool=split.test[:, 0],
            uses_test_links=True,
            mining_sources=split.test[:, 0],
            mining_targets=split.test[:, 1],
        )
