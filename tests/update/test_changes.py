"""The matches that an update changed."""

from pathlib import Path

from emea import graph_of
from emea.update.graph_versions import (
    Change,
    GraphVersions,
    changes_between,
    counts,
    write_changes,
)

BEFORE = {
    "a": ("A", 0.9),
    "b": ("B", 0.8),
    "c": ("C", 0.7),
    "d": ("D", 0.6),
    "e": ("E", 0.5),
}
AFTER = {
    "a": ("A", 0.4),
    "b": ("X", 0.8),
    "c": ("Y", 0.7),
    "e": ("Z", 0.5),
    "f": ("F", 0.3),
}


def versions(before: str, after: str) -> GraphVersions:
    """Two versions of a graph whose triples are given by their two entities."""
    old, new = (
        graph_of([(ends[0], "r", ends[1]) for ends in pairs.split()])
        for pairs in (before, after)
    )
    return GraphVersions.of(old, new)


def test_each_change_has_its_kind_and_reason(tmp_path: Path) -> None:
    both = (
        versions("ab ce dd", "ab ce ff"),
        versions("AB CC DE YZ FF", "AB DE YZ FF XX"),
    )
    found = changes_between(BEFORE, AFTER, both)
    assert [(one.change, one.source, one.reason) for one in found] == [
        ("new", "f", "the source entity is new"),
        ("changed", "b", "the target entity is new"),
        ("changed", "c", "the target entity is gone"),
        ("changed", "e", "evidence from other entities changed"),
        ("gone", "d", "the source entity is gone"),
    ]
    assert counts(BEFORE, found) == {"kept": 1, "new": 1, "changed": 3, "gone": 1}
    write_changes(tmp_path, found, {"matches": 1})
    rows = [
        line.split("\t") for line in (tmp_path / "changes.tsv").read_text().splitlines()
    ]
    assert rows[0] == list(Change._fields)
    assert rows[1] == ["new", "f", "", "F", "", "0.300000", "the source entity is new"]
    assert rows[-1][:6] == ["gone", "d", "D", "", "0.600000", ""]


def test_changed_triples_are_a_reason() -> None:
    for both in (
        (versions("ef", "ef ee"), versions("EZ", "EZ")),
        (versions("ef", "ef"), versions("EZ", "EZ ZZ")),
    ):
        found = changes_between({"e": ("E", 0.5)}, {"e": ("Z", 0.5)}, both)
        assert [one.reason for one in found] == ["triples of an entity changed"]


def test_decisions_of_the_user_are_a_reason() -> None:
    both = versions("ef", "ef ee"), versions("EZ", "EZ")
    before, after = {"e": ("E", 0.5), "f": ("Z", 0.5)}, {"f": ("E", 1.0)}
    found = changes_between(
        before, after, both, rejected={("e", "E")}, linked={("f", "E")}
    )
    reasons = {one.source: one.reason for one in found}
    assert reasons == {
        "e": "you rejected the earlier match",
        "f": "a new link names the match",
    }
