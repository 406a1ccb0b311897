"""Counts of what was read from files and what was left out."""

from dataclasses import dataclass


@dataclass(frozen=True)
class GraphReading:
    """Counts from reading a graph file.

    Args:
        label: The name of the file.
        num_literals: Triples whose object is a literal. The graph may keep them as attributes; then
            repeated ones count once.
        num_same_as: Triples left out because they are links.
        num_duplicates: Repetitions of a triple.
        num_isolated: Entities that have literals and no other triple.
        num_bad: Lines skipped because they could not be read.
    """

    label: str
    num_literals: int = 0
    num_same_as: int = 0
    num_duplicates: int = 0
    num_isolated: int = 0
    num_bad: int = 0


@dataclass(frozen=True)
class LinkReading:
    """Counts from reading a link file.

    Args:
        label: The name of the file.
        num_links: Links that are used.
        num_unknown: Links left out because one of their entities is not in its graph.
        num_duplicates: Repetitions of a link.
        num_contradicting: Links left out because one of their entities has another link.
        num_other: Mappings left out because they do not state that two entities are the same.
        num_bad: Lines skipped because they could not be read.
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
    """Counts from reading the files of a pair.

    Args:
        source: Counts of the source graph.
        target: Counts of the target graph.
        links: Counts of the file of links to learn from.
        test_links: Counts of the file of test links.
    """

    source: GraphReading
    target: GraphReading
    links: LinkReading | None = None
    test_links: LinkReading | None = None
