"""How many counterparts an entity may have."""

from enum import StrEnum


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
