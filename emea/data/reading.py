"""What was read from files and what was left out."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GraphReading:
    """What became of a graph file.

    Args:
        label: the file's name.
        num_literals: triples whose object is a literal; the graph may keep them as attributes.
        num_same_as: triples left out because they are links.
        num_duplicates: repetitions of a triple.
        num_isolated: entities that have literals and no other triple.
        num_bad: lines passed over because they could not be read.
    """

    label: str
    num_literals: int = 0
    num_same_as: int = 0
    num_duplicates: int = 0
    num_isolated: int = 0
    num_bad: int = 0


@dataclass(frozen=True)
class LinkReading:
    """What became of a link file.

    Args:
        label: the file's name.
        num_links: links that are used.
        num_unknown: links left out because a graph does not know one of their entities.
        num_duplicates: repetitions of a link.
        num_contradicting: links left out because one of their entities has another link.
        num_other: mappings left out because they do not say that two entities are the same.
        num_bad: lines passed over because they could not be read.
    """

    label: str
    num_links: int = 0
    num_unknown: int = 0
    num_duplicates: int = 0
    num_contradicting: int = 0
    num_other: int = 0
    num_bad: int = 0


@dataclass(frozen=True)
class PairReading:
    """What became of the files of a pair."""

    source: GraphReading
    target: GraphReading
    links: LinkReading | None = None
    test_links: LinkReading | None = None
