"""What an update changed: the matches that are new, changed or gone."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from emea.answer.exporting import cell
from emea.record.checked_files import write_json, write_lines

CHANGES_FILE, SUMMARY_FILE = "changes.tsv", "update.json"
COLUMNS = ("change", "source", "old_target", "new_target", "old_prob", "new_prob", "reason")

Answers = dict[str, tuple[str, float]]
"""Target and probability by source entity, all by name."""


@dataclass(frozen=True)
class Change:
    """A source entity whose match differs between two runs.

    Args:
        kind: ``new``, ``changed`` or ``gone``.
        source: The source entity.
        old: Its target and probability before, or ``None``.
        new: Its target and probability after, or ``None``.
        reason: Why the match changed, as far as the graphs show it.
    """

    kind: str
    source: str
    old: tuple[str, float] | None
    new: tuple[str, float] | None
    reason: str


@dataclass(frozen=True)
class Differences:
    """Names of the entities that differ between two versions, of the source and the target graph.

    Args:
        new: Entities that only the later version has.
        gone: Entities that only the earlier version has.
        changed: Entities that have other triples than before.
    """

    new: tuple[frozenset[str], frozenset[str]]
    gone: tuple[frozenset[str], frozenset[str]]
    changed: tuple[frozenset[str], frozenset[str]]

    def reason(self, source: str, old: str | None, new: str | None) -> str:
        """Explain a changed match by the changes of its entities."""
        reasons = (
            (source in self.gone[0], "the source entity is gone"),
            (old in self.gone[1], "the target entity is gone"),
            (source in self.new[0], "the source entity is new"),
            (new in self.new[1], "the target entity is new"),
            (source in self.changed[0], "triples of an entity changed"),
            (bool({old, new} & self.changed[1]), "triples of an entity changed"),
        )
        found = (reason for is_true, reason in reasons if is_true)
        return next(found, "evidence from other entities changed")


def changes_between(before: Answers, after: Answers, differences: Differences) -> list[Change]:
    """Return the changed matches, ordered by kind and source entity."""
    found = []
    for source in before.keys() | after.keys():
        old, new = before.get(source), after.get(source)
        if old is not None and new is not None and old[0] == new[0]:
            continue
        kind = "new" if old is None else "gone" if new is None else "changed"
        targets = (old and old[0], new and new[0])
        found.append(Change(kind, source, old, new, differences.reason(source, *targets)))
    order = ("new", "changed", "gone")
    return sorted(found, key=lambda change: (order.index(change.kind), change.source))


def write_changes(folder: Path, changes: Sequence[Change], summary: dict[str, object]) -> None:
    """Write ``changes.tsv`` and ``update.json``, which counts the changes."""
    write_lines(folder / CHANGES_FILE, _rows(changes))
    write_json(folder / SUMMARY_FILE, summary)


def counts(before: Answers, after: Answers, changes: Sequence[Change]) -> dict[str, int]:
    """Return how many matches are kept, new, changed and gone."""
    kinds = Counter(change.kind for change in changes)
    num_kept = len(before) - kinds["changed"] - kinds["gone"]
    return {"kept": num_kept, **{kind: kinds[kind] for kind in ("new", "changed", "gone")}}


def _rows(changes: Sequence[Change]) -> Iterator[str]:
    yield "\t".join(COLUMNS)
    for change in changes:
        both = (change.old, change.new)
        targets = ("" if one is None else cell(one[0]) for one in both)
        probs = ("" if one is None else f"{one[1]:.6f}" for one in both)
        yield "\t".join([change.kind, cell(change.source), *targets, *probs, change.reason])
