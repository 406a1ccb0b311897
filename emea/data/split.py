"""Splits the links into those for training and validation and those for the evaluation."""

from dataclasses import dataclass, field, replace

import numpy as np

from emea.data.advice import GIVE_LINKS, IRI_NAMES, NO_SEEDS
from emea.data.arrays import NO_MATCH, IntArray, frozen
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.data.settings import (
    KnownSplitSettings,
    OfficialSplitSettings,
    RandomSplitSettings,
)
from emea.errors import DataError

MORE_VALIDATION = (
    "Give more links, or hold out more of them: increase split.num_validation or, with "
    "split=known, split.validation_share."
)
FEWEST_LABELS = 2
"""Minimum number of training links."""


@dataclass(frozen=True, eq=False)
class Supervision:
    """The links that training may use.

    If both parts are the same links, they are *crossed*: each of several independent encoders holds
    out another fold of them, so that every link is used for training and for validation.

    Args:
        train: ``[n, 2]`` links for training.
        validation: ``[n, 2]`` links for model selection.
    """

    train: IntArray
    validation: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "train", frozen(self.train, 2))
        object.__setattr__(self, "validation", frozen(self.validation, 2))

    @property
    def is_crossed(self) -> bool:
        """Whether each link is used for training and for validation."""
        return are_crossed(self.train, self.validation)

    def crossed(self) -> "Supervision":
        """Return the same links, each for training and for validation."""
        links = np.concatenate([self.train, self.validation])
        return Supervision(links, links)


def are_crossed(train: IntArray, validation: IntArray) -> bool:
    """Return whether the links for training and for validation are the same."""
    return len(train) > 0 and np.array_equal(train, validation)


@dataclass(frozen=True, eq=False)
class Split:
    """The links of a pair in disjoint parts; only crossed links are in two of them.

    Args:
        supervision: The links that training may use.
        test: ``[n, 2]`` links for the evaluation only.
        num_missed: The number of further test links whose source or target is not in its graph.
            No method can find them, and the metrics count them as missed.
        unmatched: ``[n]`` source entities without a counterpart, for the evaluation only.
        has_few: Whether independent encoders should cross the links for training and validation.
    """

    supervision: Supervision
    test: IntArray
    num_missed: int = 0
    unmatched: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    has_few: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "test", frozen(self.test, 2))

    def with_labels(self, labels: IntArray) -> "Split":
        """Return the split of a run that used these links as labels, without them in the test."""
        given = set(map(tuple, labels.tolist()))
        free = np.array(
            [tuple(link) not in given for link in self.test.tolist()], dtype=bool
        )
        known = Supervision(labels, self.supervision.validation)
        return replace(self, supervision=known, test=self.test[free])

    @property
    def missed_share(self) -> float:
        """The share of all test links that no method can find."""
        return self.num_missed / max(1, self.num_missed + len(self.test))


def random_split(
    pair: GraphPair,
    ratio: float,
    seed: int = 0,
    num_validation: int = RandomSplitSettings.num_validation,
    validation_from: str = RandomSplitSettings.validation_from,
) -> Split:
    """Draw a random split.

    With the same seed, the training links of a smaller ratio are among those of a larger ratio.
    Links whose source or target is not in its graph are drawn like all others. They are then left
    out of the training and validation links and count as missed among the test links.

    Args:
        pair: The pair whose links to split.
        ratio: The share of the links for training.
        seed: The seed of the split.
        num_validation: The number of validation links.
        validation_from: ``rest`` draws them from the links not used for training, ``train`` from
            the training links.

    Raises:
        DataError: The pair has too few links.
    """
    # The draw permutes rows and does not use the content of the links.
    absent = np.full((pair.num_absent, 2), NO_MATCH, dtype=np.int64)
    links = np.concatenate([pair.links, absent])
    links = links[np.random.default_rng(seed).permutation(len(links))]
    num_train = round(ratio * len(links))
    train = links[:num_train]
    rest = links[num_train:]
    return _with_validation(
        pair.name,
        train,
        rest,
        num_validation=num_validation,
        validation_from=validation_from,
    )


def official_split(
    pair: GraphPair,
    seed: int = 0,
    num_validation: int = OfficialSplitSettings.num_validation,
    validation_from: str = OfficialSplitSettings.validation_from,
) -> Split:
    """Return the split that the authors of the data set published.

    Args:
        pair: A pair with an official split.
        seed: The seed with which validation links are drawn if the authors published none.
        num_validation: The number of validation links to draw in this case.
        validation_from: ``rest`` draws them from the test links, ``train`` from the training links.

    Raises:
        DataError: The pair has no official split, or too few links in it.
    """
    official = pair.official
    if official is None:
        raise DataError(f"{pair.name} has no official split. Use split=random.")
    absent = official.num_absent
    if len(official.validation):
        return _checked(
            pair.name, official.train, official.validation, official.test, absent
        )
    rng = np.random.default_rng(seed)
    train = official.train[rng.permutation(len(official.train))]
    test = official.test[rng.permutation(len(official.test))]
    return _with_validation(
        pair.name,
        train,
        test,
        num_validation=num_validation,
        validation_from=validation_from,
        num_absent=absent,
    )


def known_split(
    pair: GraphPair,
    seed: int = 0,
    num_validation: int = KnownSplitSettings.num_validation,
    validation_share: float = KnownSplitSettings.validation_share,
    few_links: int = KnownSplitSettings.few_links,
) -> Split:
    """Use all known links as labels, in order to align two graphs.

    Labels are the official training links, or all links if there is no official split. Test links
    are the official test links, or none. Validation links are drawn from the labels, unless the
    official split has some.

    Args:
        pair: The pair whose links to split.
        seed: The seed with which validation links are drawn.
        num_validation: The maximum number of validation links.
        validation_share: The maximum share of the labels for validation.
        few_links: With fewer labels, independent encoders use all of them for both.

    Raises:
        DataError: There are too few labels.
    """
    official = pair.official or OfficialSplit(
        pair.links, pair.links[:0], pair.links[:0]
    )
    labels = official.train[
        np.random.default_rng(seed).permutation(len(official.train))
    ]
    validation = official.validation
    has_few = False
    if not len(validation):
        num_labels = len(labels)
        cut = num_labels - min(num_validation, int(validation_share * num_labels))
        labels, validation = labels[:cut], labels[cut:]
        has_few = len(validation) > 0 and num_labels < few_links
    if not len(labels) and not has_literals(pair):
        raise DataError(_without_seeds(pair))
    if len(labels) < FEWEST_LABELS and not has_literals(pair):
        raise DataError(
            f"{pair.name} has {len(labels)} link to learn from, which is too few. Give at least "
            f"{FEWEST_LABELS} links, better 10 or more, between entities with many triples."
        )
    known = Supervision(labels, validation)
    return Split(known, official.test, official.num_absent, has_few=has_few)


def no_links_split(pair: GraphPair) -> Split:
    """Use all links as test links and none as labels.

    Args:
        pair: A pair with literals, which take the place of labels.

    Raises:
        DataError: The pair has no literals.
    """
    if not has_literals(pair):
        raise DataError(_without_seeds(pair))
    none = pair.links[:0]
    return Split(Supervision(none, none), pair.links, pair.num_absent)


def has_literals(pair: GraphPair) -> bool:
    """Return whether both graphs have literals or vectors, which can take the place of labels."""
    graphs = (pair.source, pair.target)
    return all(graph.attributes is not None or graph.vectors for graph in graphs)


def _without_seeds(pair: GraphPair) -> str:
    """Return that a pair has neither links nor literals, and what to do."""
    sides = (("source", pair.source), ("target", pair.target))
    lacking = [side for side, graph in sides if graph.attributes is None]
    rest = f". {NO_SEEDS}"
    if len(lacking) == 1:
        rest = (
            f", and its {lacking[0]} graph has no literals. {GIVE_LINKS}. {IRI_NAMES}"
        )
    return f"{pair.name} has no links to learn from{rest}"


def _with_validation(
    name: str,
    train: IntArray,
    rest: IntArray,
    *,
    num_validation: int,
    validation_from: str,
    num_absent: int = 0,
) -> Split:
    """Take the validation links from the start of the rest or the end of the training links."""
    pool = train if validation_from == "train" else rest
    if num_validation > len(pool):
        part = (
            "training links" if validation_from == "train" else "links outside training"
        )
        raise DataError(
            f"{name} has {len(pool)} {part}, too few for {num_validation} validation links. Lower "
            "split.num_validation."
        )
    if validation_from == "train":
        cut = len(train) - num_validation
        return _checked(name, train[:cut], train[cut:], rest, num_absent)
    return _checked(
        name, train, rest[:num_validation], rest[num_validation:], num_absent
    )


def _checked(
    name: str, train: IntArray, validation: IntArray, test: IntArray, num_absent: int
) -> Split:
    """Return the split without absent links, and count those of the test links."""
    num_absent += int((test[:, 0] == NO_MATCH).sum())
    train, validation, test = (
        links[links[:, 0] != NO_MATCH] for links in (train, validation, test)
    )
    for part, links in (("training", train), ("test", test)):
        if not len(links):
            total = len(train) + len(validation) + len(test)
            raise DataError(
                f"{name} has too few links ({total}): no {part} link is left"
            )
    return Split(Supervision(train, validation), test, num_absent)
