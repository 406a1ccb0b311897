"""Settings of the splits and the protocol."""

from dataclasses import dataclass
from enum import StrEnum

from emea.setting import MISSING, SEED, SHARE_BELOW_ONE, Range, setting, up_to


class Cardinality(StrEnum):
    """How many counterparts an entity of either graph may have.

    In ``one_to_many``, a source entity may have several targets, for example duplicates of one
    person, and a target has at most one source.
    """

    ONE_TO_ONE = "one_to_one"
    ONE_TO_MANY = "one_to_many"
    MANY_TO_ONE = "many_to_one"
    MANY_TO_MANY = "many_to_many"

    @property
    def one_target(self) -> bool:
        """Whether a source entity has at most one target."""
        return self in (Cardinality.ONE_TO_ONE, Cardinality.MANY_TO_ONE)

    @property
    def one_source(self) -> bool:
        """Whether a target entity has at most one source."""
        return self in (Cardinality.ONE_TO_ONE, Cardinality.ONE_TO_MANY)

    @property
    def unique_sides(self) -> dict[str, int]:
        """The sides whose entities occur in one link only, and their columns in an array."""
        sides = {"source": 0} if self.one_target else {}
        return sides | ({"target": 1} if self.one_source else {})


def cardinality_of(one_target: bool, one_source: bool) -> Cardinality:
    """Return the cardinality with these limits."""
    names = {False: "many", True: "one"}
    return Cardinality(f"{names[one_source]}_to_{names[one_target]}")


@dataclass(frozen=True)
class RatioSettings:
    """The share of the links used for training."""

    value: float = setting(
        MISSING,
        "share of the links used for training",
        Range(0, 1, above=True, below=True),
    )


NUM_VALIDATION = up_to(100_000_000, least=0)

VALIDATION_FROM = ("rest", "train")


@dataclass(frozen=True)
class SplitSettings:
    """A split that draws validation links."""

    seed: int = setting("${split_seed}", "seed of the split", SEED)
    num_validation: int = setting(
        100, "number of validation links", NUM_VALIDATION, "paper, section 5.1"
    )


@dataclass(frozen=True)
class RandomSplitSettings(SplitSettings):
    """A random split of all links."""

    ratio: float = setting(
        "${ratio.value}",
        "share of the links used for training",
        Range(0, 1, True, True),
    )
    validation_from: str = setting(
        "rest",
        "rest: validation links are labels in addition to the ratio; train: they are part of it",
        VALIDATION_FROM,
        source="paper",
    )


@dataclass(frozen=True)
class OfficialSplitSettings(SplitSettings):
    """The split that the authors of the data published."""

    num_validation: int = setting(
        100, "validation links to draw if the authors published none", NUM_VALIDATION
    )
    validation_from: str = setting(
        "rest",
        "where these links are drawn from: the test links or the train links",
        VALIDATION_FROM,
    )


@dataclass(frozen=True)
class KnownSplitSettings(SplitSettings):
    """All known links are labels."""

    num_validation: int = setting(
        100,
        "number of validation links, at most",
        NUM_VALIDATION,
        source="ours, as in the paper",
    )
    validation_share: float = setting(
        0.2,
        "share of the labels that become validation links, at most",
        SHARE_BELOW_ONE,
        source="ours: if there are few labels, training needs them more",
    )
    few_links: int = setting(
        200,
        "with fewer labels, each encoder of ensemble=independent holds out another part of them, "
        "so that all are used for training and for validation; 0: never",
        NUM_VALIDATION,
        source="ours",
    )


@dataclass(frozen=True)
class ReleasedSettings:
    """The protocol of the paper's released code, in which test links influence training."""

    seed: int = setting("${seed}", "seed that draws the links", SEED)
