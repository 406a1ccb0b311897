"""What an update changed: the matches that are new, changed or gone."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from emea.answer.exporting import cell
from emea.record.checked_files import write_json, write_lines
from emea.update.graph_versions import Versions

CHANGES_FILE, SUMMARY_FILE = "changes.tsv", "update.json"
KINDS = ("new", "changed", "gone")

Answers = dict[str, tuple[str, float]]
"""Target and probability by source entity, all by name."""


class Change(NamedTuple):
    """A row of ``changes.tsv``: a source entity whose match differs between two runs.

    A target that does not exist is an empty text, and so is its probability.
    """

    change: str
    source: str
    old_target: str
    new_target: str
    old_prob: str
    new_prob: str
    reason: str


def changes_between(before: Answers, after: Answers, versions: Versions) -> list[Change]:
    """Return the changed matches, ordered by kind and source entity."""
    new_source, gone_source, changed_source = versions[0].differing_names()
    new_target, gone_target, changed_target = versions[1].differing_names()
    found = []
    for source in before.keys() | after.keys():
        old, new = before.get(source), after.get(source)
        if old is not None and new is not None and old[0] == new[0]:
            continue
        reasons = (
            (source in gone_source, "the source entity is gone"),
            (old is not None and old[0] in gone_target, "the target entity is gone"),
            (source in new_source, "the source entity is new"),
            (new is not None and new[0] in new_target, "the target entity is new"),
            (source in changed_source, "triples of an entity changed"),
            (
                bool({one[0] for one in (old, new) if one} & changed_target),
                "triples of an entity changed",
            ),
            (True, "evidence from other entities changed"),
        )
        kind = "new" if old is None else "gone" if new is None else "changed"
        cells = [("", "") if one is None else (one[0], f"{one[1]:.6f}") for one in (old, new)]
        targets, probs = zip(*cells, strict=True)
        reason = next(reason for is_true, reason in reasons if is_true)
        found.append(Change(kind, source, targets[0], targets[1], probs[0], probs[1], reason))
    return sorted(found, key=lambda one: (KINDS.index(one.change), one.source))


def write_changes(folder: Path, changes: Sequence[Change], summary: dict[str, object]) -> None:
    """Write ``changes.tsv`` and ``update.json``, which counts the changes."""
    rows = [Change._fields, *changes]
    write_lines(folder / CHANGES_FILE, ("\t".join(map(cell, row)) for row in rows))
    write_json(folder / SUMMARY_FILE, summary)


def counts(before: Answers, changes: Sequence[Change]) -> dict[str, int]:
    """Return how many matches are kept, new, changed and gone."""
    kinds = Counter(change.change for change in changes)
    num_kept = len(before) - kinds["changed"] - kinds["gone"]
    return {"kept": num_kept, **{kind: kinds[kind] for kind in KINDS}}
