"""What a run may see: the two protocols."""

import logging
from dataclasses import dataclass

import numpy as np

from emea.data.arrays import IntArray
from emea.data.split import Split
from emea.errors import ConfigError

logger = logging.getLogger(__name__)


def seen_links(protocol: str) -> str:
    """Whether test links could have touched a run's numbers; only ``strict`` is walled by tests."""
    told = {"strict": "saw no test links", "released": "USED TEST LINKS in training"}
    return told.get(protocol, "MAY HAVE USED test links: a protocol of its own")


@dataclass(frozen=True, eq=False)
class Visible:
    """The links that training and EM may use; all they ever get.

    Args:
        train: links the encoder trains on; their entities are labelled.
        validation: held-out labels.
        normaliser_links: where the normaliser is fitted.
        weight_links: where rule weights are fitted.
        unseen_links: where the weights of rules that ask for links unseen by the encoder are
            fitted; q is certain of them, as it is of the training links. ``None``: there are
            none, such rules use ``weight_links`` as all others do.
        relation_links: where relation inclusions are estimated; ``None``: from the labels and
            the model's own predictions.
        label_pool: source entities that may get a pseudo-label; ``None``: any unlabelled one.
        mining_sources: source entities that semi-supervised training may pair; ``None``: any
            unlabelled one.
        mining_targets: target entities, likewise.
        uses_test_links: whether any of the above holds test links.
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


@dataclass(frozen=True)
class Strict:
    """No test link is seen: permuting or deleting them changes no prediction."""

    def __call__(self, split: Split) -> Visible:
        """What a run on this split may see."""
        known = split.supervision
        return Visible(
            train=known.train,
            validation=known.validation,
            normaliser_links=known.validation,
            weight_links=np.concatenate([known.train, known.validation]),
            unseen_links=None,
            relation_links=None,
            label_pool=None,
            uses_test_links=False,
        )


@dataclass(frozen=True)
class Released:
    """As the code released with the paper does: test links reach into training.

    Args:
        num_normaliser_links: test links on which the normaliser is fitted.
        num_unseen_links: test links on which the weights of AvoidConf are fitted, and of which
            q is certain then.
        seed: which ones.
    """

    num_normaliser_links: int = 100
    num_unseen_links: int = 100
    seed: int = 0

    def __call__(self, split: Split) -> Visible:
        """What a run on this split may see.

        Raises:
            ConfigError: there are no test links to see.
        """
        if not len(split.test):
            raise ConfigError("protocol=released uses test links and there are none: use strict")
        logger.warning(
            "protocol=released uses TEST links in training, as the paper's code did: relation "
            "inclusions from all links, the normaliser from %d of them, AvoidConf's weights from "
            "%d that it takes as labels, pseudo-labels and mined pairs for test entities alone. "
            "Do not compare its numbers with protocol=strict.",
            self.num_normaliser_links,
            self.num_unseen_links,
        )
        known = split.supervision
        drawn = split.test[np.random.default_rng(self.seed).permutation(len(split.test))]
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
