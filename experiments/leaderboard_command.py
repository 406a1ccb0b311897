"""``python -m experiments leaderboard`` writes ``docs/leaderboard.md`` from the rows."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from emea.record.checked_files import write_atomic
from emea.results.leaderboard import Row, read_row
from experiments.archive.study import EXPERIMENTS

ROWS = EXPERIMENTS / "leaderboard"
PAGE = EXPERIMENTS.parent / "docs" / "leaderboard.md"

HEAD = """# Leaderboard

One row is one alignment of one pair of graphs. `emea verify` recomputes its numbers from the
alignment and the gold. This page is written from `experiments/leaderboard/*.json` by `python -m
experiments leaderboard`.

*precision*, *recall* and *F1* judge all matches of source entities with a test link or, if the
data names them, without a counterpart. *recall at .9* is the largest recall over all thresholds
at which the precision is at least 0.9. A row with the protocol *uses test links* is not
comparable with the others. Hit@1 among test targets is not in a row, because it cannot be
computed from an alignment; see [Results](results.md).
"""

TAIL = """
## Add a row

1. Run your method, and write its matches as a table with the columns `source`, `target` and
   `probability`. Runs of emea have `alignment.tsv`.
2. Write the row. For a run of emea: `emea verify ROW.json --run RUN --method "em=dual" --by "your
   name"`. For another program, copy a row of `experiments/leaderboard` and fill it in. Its keys
   are described in `emea/results/leaderboard_schema.json`.
3. Check it: `emea verify ROW.json --alignment alignment.tsv`. The gold is read from the data set
   that the row names. If emea has no option for it, name the test links with `--gold FILE`, and
   entities without a counterpart with `--unmatched FILE`.
4. Put the row into `experiments/leaderboard`, the alignment next to it if it is small, and its
   address into `alignment` otherwise. Run `python -m experiments leaderboard`.

`gold.sha256` is the digest of the test links, so rows with the same digest have the same test. Do
not choose settings on these links.
"""

COLUMNS = (
    *(
        "method",
        "by",
        "protocol",
        "evidence",
        "labels",
        "answers",
        "precision",
        "recall",
    ),
    *(
        "F1",
        "recall at .9",
        "recall at .95",
        "calibration error",
        "seconds",
        "machine",
        "code",
    ),
)


def main(arguments: Sequence[str]) -> int:
    """Write the page and return the exit status."""
    if arguments:
        print("usage: python -m experiments leaderboard")
        return 0 if arguments[0] in ("-h", "--help") else 2
    rows = read_rows(ROWS)
    write_atomic(PAGE, page(rows))
    print(f"{len(rows)} rows: wrote {PAGE}")
    return 0


def read_rows(folder: Path) -> list[Row]:
    """Return the rows of a folder."""
    return [read_row(path) for path in sorted(folder.glob("*.json"))]


def page(rows: Iterable[Row]) -> str:
    """Return the page: one table for each gold, best F1 first."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((_title(row), row["gold"]["sha256"]), []).append(row)
    parts = [HEAD]
    for (title, digest), found in sorted(groups.items()):
        gold = found[0]["gold"]
        counts = f"{gold['num_links']:,} test links"
        if gold["num_without_counterpart"]:
            counts += (
                f", {gold['num_without_counterpart']:,} entities without a counterpart"
            )
        parts.append(f"## {title}\n\n{counts}; gold `{digest[:12]}`.\n")
        parts.append(_table(sorted(found, key=_rank)))
    return "\n".join(parts) + TAIL


def _rank(row: Row) -> tuple[bool, float, str]:
    return row["protocol"] != "strict", -row["numbers"]["f1"], row["method"]


def _title(row: Row) -> str:
    """Return the pair and its split."""
    data = row["data"]
    parts = [data["name"]]
    if data["split"] == "random":
        share, seed = data.get("ratio", 0), data.get("seed", 0)
        parts.append(f"{100 * share:.4g}% labels, split {seed}")
    elif data["split"] == "official":
        fold = data.get("fold")
        parts.append("official split" if fold is None else f"official fold {fold}")
    elif data["split"] == "none":
        parts.append("without labels")
    return ", ".join(parts)


def _table(rows: Iterable[Row]) -> str:
    lines = ["| " + " | ".join(COLUMNS) + " |"]
    lines.append("|---|---|---|---|" + "---:|" * 9 + "---|---|")
    lines += ["| " + " | ".join(_cells(row)) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cells(row: Row) -> list[str]:
    numbers = row["numbers"]
    labels, error = row["gold"]["num_labels"], numbers["calibration_error"]
    shares = [numbers[name] for name in ("precision", "recall", "f1")]
    shares += [numbers["recall_at_0.9"], numbers["recall_at_0.95"]]
    texts = [row["method"], row["by"], row["protocol"], row["evidence"]]
    texts += ["" if labels is None else f"{labels:,}", f"{numbers['num_answers']:,}"]
    texts += [f"{share:.3f}" for share in shares]
    texts += ["" if error is None else f"{error:.3f}", f"{row.get('seconds', '')}"]
    texts += [row.get("machine", ""), row.get("commit", "")[:10] or row.get("code", "")]
    # a vertical bar would end the cell
    return [text.replace("|", "\\|").replace("\n", " ") for text in texts]
