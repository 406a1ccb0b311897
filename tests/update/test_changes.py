"""The matches that an update changed."""

from pathlib import Path

from emea.update.changes import COLUMNS, Differences, changes_between, counts, write_changes

NOTHING: frozenset[str] = frozenset()
BEFORE = {"a": ("A", 0.9), "b": ("B", 0.8), "c": ("C", 0.7), "d": ("D", 0.6), "e": ("E", 0.5)}
AFTER = {"a": ("A", 0.4), "b": ("X", 0.8), "c": ("Y", 0.7), "e": ("Z", 0.5), "f": ("F", 0.3)}
DIFFERENCES = Differences(
    new=(frozenset("f"), frozenset("X")),
    gone=(frozenset("d"), frozenset("C")),
    changed=(NOTHING, NOTHING),
)


def test_each_change_has_its_kind_and_reason(tmp_path: Path) -> None:
    found = changes_between(BEFORE, AFTER, DIFFERENCES)
    assert [(one.kind, one.source, one.reason) for one in found] == [
        ("new", "f", "the source entity is new"),
        ("changed", "b", "the target entity is new"),
        ("changed", "c", "the target entity is gone"),
        ("changed", "e", "evidence from other entities changed"),
        ("gone", "d", "the source entity is gone"),
    ]
    assert counts(BEFORE, AFTER, found) == {"kept": 1, "new": 1, "changed": 3, "gone": 1}
    write_changes(tmp_path, found, {"matches": 1})
    rows = [line.split("\t") for line in (tmp_path / "changes.tsv").read_text().splitlines()]
    assert rows[0] == list(COLUMNS)
    assert rows[1] == ["new", "f", "", "F", "", "0.300000", "the source entity is new"]
    assert rows[-1][:6] == ["gone", "d", "D", "", "0.600000", ""]


def test_changed_triples_are_a_reason() -> None:
    same = (NOTHING, NOTHING)
    changed = Differences(same, same, (frozenset("e"), NOTHING))
    found = changes_between({"e": ("E", 0.5)}, {"e": ("Z", 0.5)}, changed)
    assert found[0].reason == "triples of an entity changed"
