"""Splits of the links into what training may see and what evaluation asks."""

from dataclasses import dataclass

import numpy as np

from emea.data.arrays import IntArray, frozen
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.errors import ConfigError, DataError

VALIDATION_FROM = ("rest", "train")
NO_SEEDS = (
    "Give links that are known (data.links=FILE, or --links FILE), or use the literals of the "
    "graphs as evidence (literals=equal)."
)
FEWEST_LABELS = 2
"""Training links below which there is nothing to learn from."""


@dataclass(frozen=True, eq=False)
class Supervision:
    """The links training may see.

    Args:
        train: ``[n, 2]`` links to learn from.
        validation: ``[n, 2]`` links to choose by.
    """

    train: IntArray
    validation: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "train", frozen(self.train, 2))
        object.__setattr__(self, "validation", frozen(self.validation, 2))


@dataclass(frozen=True, eq=False)
class Split:
    """A pair's links in three disjoint parts.

    Args:
        supervision: what training may see.
        test: ``[n, 2]`` links for the evaluation alone.
    """

    supervision: Supervision
    test: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "test", frozen(self.test, 2))

    def with_labels(self, labels: IntArray) -> "Split":
        """The parts of a run that took these links as labels: no test link is among them."""
        free = ~np.isin(self.test[:, 0], labels[:, 0])
        return Split(Supervision(labels, self.supervision.validation), self.test[free])


def random_split(
    pair: GraphPair,
    ratio: float,
    seed: int,
    num_validation: int = 100,
    validation_from: str = "rest",
) -> Split:
    """Draw the parts at random.

    With one seed a smaller ratio's training links are among a larger one's.

    Args:
        pair: whose links to split.
        ratio: share of the links used for training.
        seed: same seed, same split.
        num_validation: links for validation.
        validation_from: ``rest`` takes them from the links not used for training, ``train`` out
            of the training share.

    Raises:
        ConfigError: an argument is out of range.
        DataError: the pair has too few links for the parts asked for.
    """
    if not 0 < ratio < 1:
        raise ConfigError(f"ratio must lie between 0 and 1, both excluded, got {ratio}")
    # Rows are permuted, never looked at: the draw cannot depend on what a link joins.
    links = pair.links[np.random.default_rng(seed).permutation(len(pair.links))]
    num_train = round(ratio * len(links))
    train, rest = links[:num_train], links[num_train:]
    return _with_validation(pair.name, train, rest, num_validation, validation_from)


def official_split(
    pair: GraphPair,
    seed: int,
    num_validation: int = 100,
    validation_from: str = "rest",
) -> Split:
    """The parts the data set's authors fixed.

    Args:
        pair: a pair with official parts.
        seed: for the draw of validation links, needed only where the authors fixed none.
        num_validation: how many to draw then.
        validation_from: ``rest`` draws them from the test part, ``train`` from the training part.

    Raises:
        ConfigError: an argument is out of range.
        DataError: the pair has no official parts or too few links in them.
    """
    official = pair.official
    if official is None:
        raise DataError(f"{pair.name} has no official parts: use split=random")
    if len(official.validation):
        return _checked(pair.name, official.train, official.validation, official.test)
    rng = np.random.default_rng(seed)
    train = official.train[rng.permutation(len(official.train))]
    test = official.test[rng.permutation(len(official.test))]
    return _with_validation(pair.name, train, test, num_validation, validation_from)


def known_split(
    pair: GraphPair, seed: int, num_validation: int = 100, validation_share: float = 0.2
) -> Split:
    """All known links are labels: to align two graphs, not to measure on links that are known.

    Labels are the training part of the pair's official parts, or all its links; test links are
    the official test part, or none. Validation links are held out from the labels, unless the
    official parts have some.

    Args:
        pair: whose links to split.
        seed: for the draw of validation links.
        num_validation: links for validation, at most.
        validation_share: share of the labels for validation, at most.

    Raises:
        ConfigError: an argument is out of range.
        DataError: there are too few labels.
    """
    if num_validation < 0:
        raise ConfigError(f"num_validation must not be negative, got {num_validation}")
    if not 0 <= validation_share < 1:
        raise ConfigError(
            f"validation_share must be at least 0 and below 1, got {validation_share}"
        )
    official = pair.official or OfficialSplit(pair.links, pair.links[:0], pair.links[:0])
    labels = official.train[np.random.default_rng(seed).permutation(len(official.train))]
    validation = official.validation
    if not len(validation):
        cut = len(labels) - min(num_validation, int(validation_share * len(labels)))
        labels, validation = labels[:cut], labels[cut:]
    if not len(labels) and not has_literals(pair):
        raise DataError(f"{pair.name} has no links to learn from. {NO_SEEDS}")
    if len(labels) < FEWEST_LABELS and not has_literals(pair):
        raise DataError(
            f"{pair.name} has {len(labels)} link to learn from, which is too few: give at least "
            f"{FEWEST_LABELS}, better 10 or more, of the entities with most triples"
        )
    return Split(Supervision(labels, validation), official.test)


def no_links_split(pair: GraphPair) -> Split:
    """No link is given, and all links are test links.

    Args:
        pair: the graphs, with literals to start from.

    Raises:
        DataError: the pair has no literals.
    """
    if not has_literals(pair):
        raise DataError(f"{pair.name} has no links to learn from. {NO_SEEDS}")
    none = pair.links[:0]
    return Split(Supervision(none, none), pair.links)


def has_literals(pair: GraphPair) -> bool:
    """Whether literals of both graphs were kept, which can take the place of links."""
    return pair.source.attributes is not None and pair.target.attributes is not None


def _with_validation(
    name: str, train: IntArray, rest: IntArray, num_validation: int, validation_from: str
) -> Split:
    """Takes the validation links from the front of the rest or the end of training."""
    if validation_from not in VALIDATION_FROM:
        allowed = " or ".join(VALIDATION_FROM)
        raise ConfigError(f"validation_from must be {allowed}, got {validation_from!r}")
    if num_validation < 0:
        raise ConfigError(f"num_validation must not be negative, got {num_validation}")
    pool = train if validation_from == "train" else rest
    if num_validation > len(pool):
        part = "training links" if validation_from == "train" else "links beside training"
        raise DataError(
            f"{name} has {len(pool)} {part}, too few for {num_validation} validation "
            "links; lower split.num_validation"
        )
    if validation_from == "train":
        cut = len(train) - num_validation
        return _checked(name, train[:cut], train[cut:], rest)
    return _checked(name, train, rest[:num_validation], rest[num_validation:])


def _checked(name: str, train: IntArray, validation: IntArray, test: IntArray) -> Split:
    for part, links in (("training", train), ("test", test)):
        if not len(links):
            total = len(train) + len(validation) + len(test)
            raise DataError(f"{name} has too few links ({total}): no {part} link is left")
    return Split(Supervision(train, validation), test)
