"""Measures answers without links, which decoys judge, and writes a row for each cell.

    python -m benchmarks decoys DATA [--cells TEXT ...] [--file FILE] [--allow-dirty]
    python -m benchmarks decoys DATA --tables PAGE

DATA is a folder with ``tables`` and ``oaei2010``. Each cell is one run of ``emea align`` as a
process of its own; ``--cells`` chooses the cells whose names contain a text. Rows are appended to
FILE, by default ``experiments/literals/decoys.jsonl``. ``--tables`` writes the tables of PAGE from
the rows of FILE and measures nothing.
"""

import argparse
import csv
import gzip
import json
import random
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import bench_parser
from benchmarks.start_up import with_this_package
from emea.errors import UserError
from emea.evaluation.calibration import expected_calibration_error, reliability_bins
from emea.record.checked_files import write_atomic
from emea.record.provenance import provenance
from experiments.archive.study import EXPERIMENTS
from experiments.origins import machine_of

FILE = EXPERIMENTS / "literals" / "decoys.jsonl"

LINKS_SEED, DELETED_SEED = 3, 0
DELETED = (0.0, 0.2, 0.4, 0.6, 0.8)
NONE_LEFT = 1.0
"""Share of the counterparts that are deleted if both sides keep entities without one only."""

Row = dict[str, Any]
Links = set[tuple[str, str]]


@dataclass(frozen=True)
class Pair:
    """Files of a pair, below the folder of the data.

    Args:
        source: The source graph or table.
        target: The target graph or table.
        gold: The links; ``None`` if nothing has a counterpart.
        encoding: The encoding of tables.
        is_complete: Whether entities without a link have no counterpart, so that they are judged.
    """

    source: str
    target: str
    gold: str | None
    encoding: str = "utf-8"
    is_complete: bool = True


def _table(name: str) -> Pair:
    folder = f"tables/{name}"
    return Pair(f"{folder}/a.csv.gz", f"{folder}/b.csv.gz", f"{folder}/gold.tsv.gz")


def _instances(name: str) -> Pair:
    folder = f"oaei2010/{name}"
    source, target, gold = (
        f"{folder}/{file}" for file in ("source.nt", "target.nt", "links.tsv")
    )
    return Pair(source, target, gold, is_complete=False)


_DBLP = "tables/dblp_acm"
PAIRS = {
    "amazon_google": _table("amazon_google"),
    "imdb_tmdb": _table("imdb_tmdb"),
    "dblp_acm": Pair(
        f"{_DBLP}/DBLP2.csv.gz",
        f"{_DBLP}/ACM.csv.gz",
        f"{_DBLP}/DBLP-ACM_perfectMapping.csv.gz",
        "latin-1",
    ),
    "remakes": _table("remakes"),
    "restaurants": _instances("restaurants"),
    "persons1": _instances("persons1"),
    "products_papers": Pair(
        "tables/amazon_google/a.csv.gz", f"{_DBLP}/ACM.csv.gz", None
    ),
}


@dataclass(frozen=True)
class Cell:
    """One run: a pair, its given links, its target precision, and the counterparts deleted."""

    pair: str
    links: int = 0
    target: float | None = None
    deleted: float | None = None

    @property
    def name(self) -> str:
        """Return a name such as ``remakes 100 links target 0.9``."""
        parts = [self.pair]
        parts += [f"{self.links} links"] if self.links else []
        parts += [] if self.target is None else [f"target {self.target:g}"]
        parts += [] if self.deleted is None else [f"deleted {self.deleted:g}"]
        return " ".join(parts)


TABLES = ("amazon_google", "imdb_tmdb", "dblp_acm", "remakes")
CELLS = (
    *(Cell(name) for name in PAIRS),
    *(Cell(name, target=0.9) for name in TABLES),
    *(Cell(name, 20) for name in PAIRS if PAIRS[name].gold),
    # restaurants have 89 links
    *(Cell(name, 100) for name in (*TABLES, "persons1")),
    *(Cell(name, 100, 0.9) for name in TABLES),
    *(Cell(name, deleted=share) for name in TABLES for share in DELETED),
    *(Cell(name, deleted=NONE_LEFT) for name in TABLES if name != "dblp_acm"),
)


def main(arguments: Sequence[str]) -> None:
    """Measure the cells that the arguments choose, and append a row for each."""
    options = _options(arguments)
    if options.tables is not None:
        rows = [json.loads(line) for line in options.file.read_text().splitlines()]
        write_tables(options.tables, rows)
        return
    origin = provenance()
    if origin["dirty"] != "false" and not options.allow_dirty:
        raise UserError(
            "The commit is unknown or the working tree is dirty. Commit first, or use "
            "--allow-dirty."
        )
    for cell in CELLS:
        if options.cells and not any(text in cell.name for text in options.cells):
            continue
        row = {
            **measured(cell, options.data),
            "commit": origin["commit"],
            "dirty": origin["dirty"],
            "machine": machine_of(origin),
        }
        with options.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(cell.name, row, flush=True)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = bench_parser("decoys", __doc__, has_file=False)
    parser.add_argument("data", type=Path, help="folder of the data")
    parser.add_argument("--cells", nargs="+", help="texts of the names of cells")
    parser.add_argument("--file", type=Path, default=FILE, help="file of the rows")
    parser.add_argument("--allow-dirty", action="store_true")
    parser.add_argument("--tables", type=Path, help="page whose tables are written")
    return parser.parse_args(arguments)


def measured(cell: Cell, data: Path) -> Row:
    """Run a cell and return its row."""
    pair = PAIRS[cell.pair]
    gold = read_links(data / pair.gold) if pair.gold else set()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        files = [data / pair.source, data / pair.target]
        if cell.deleted:
            files, gold = without_counterparts(pair, cell.deleted, data, folder)
        given = _drawn(gold, cell.links, folder / "links.tsv")
        command = ["align", *map(str, files)]
        command += ["--links", str(folder / "links.tsv")] if given else []
        command += ["--target-precision", f"{cell.target:g}"] if cell.target else []
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [sys.executable, "-m", "emea", *command, "--out", str(folder / "run")],
            env=with_this_package(),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise UserError(f"{cell.name} failed: {done.stderr.strip()[-500:]}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        judged = numbers(folder / "run", gold, given, pair.is_complete)
    shown = re.sub(
        f"{re.escape(str(data))}/|{re.escape(temporary)}/", "", " ".join(command)
    )
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "cell": cell.name,
        "measured": "answer" if cell.deleted is None else "share",
        "pair": cell.pair,
        "links": cell.links,
        "links_seed": LINKS_SEED if cell.links else None,
        "target_precision": cell.target,
        "deleted": cell.deleted,
        "deleted_seed": None if cell.deleted is None else DELETED_SEED,
        **judged,
        "cpu_seconds": round(seconds, 1),
        "command": f"emea {shown}",
    }


def read_links(path: Path) -> Links:
    """Read the links of a TSV file, or of a CSV file with a heading, compressed or not."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        is_csv = ".csv" in path.suffixes
        rows = [
            row for row in csv.reader(file, delimiter="," if is_csv else "\t") if row
        ]
        return {(row[0], row[1]) for row in rows[is_csv:]}


def _drawn(gold: Links, number: int, file: Path) -> Links:
    """Draw links, and write them to a file."""
    given = random.Random(LINKS_SEED).sample(sorted(gold), number) if number else []
    file.write_text("".join(f"{a}\t{b}\n" for a, b in given), encoding="utf-8")
    return set(given)


def without_counterparts(
    pair: Pair, share: float, data: Path, folder: Path
) -> tuple[list[Path], Links]:
    """Write both tables without the target rows of a share of the links; return the other links.

    If all counterparts are deleted, the source rows of the links are left out, too.
    """
    assert pair.gold is not None
    gold = sorted(read_links(data / pair.gold))
    random.Random(DELETED_SEED).shuffle(gold)
    gone = gold[: round(share * len(gold))]
    left_out = [
        {source for source, _ in gone} if share == NONE_LEFT else set(),
        {target for _, target in gone},
    ]
    files = []
    for place, name, ids in zip(
        (pair.source, pair.target), "ab", left_out, strict=True
    ):
        with gzip.open(data / place, "rt", encoding=pair.encoding, newline="") as file:
            rows = [row for row in csv.reader(file) if row and row[0] not in ids]
        files.append(folder / f"{name}.csv")
        with files[-1].open("w", encoding="utf-8", newline="") as written:
            csv.writer(written).writerows(rows)
    return files, set(gold[len(gone) :])


def numbers(run: Path, gold: Links, given: Links, is_complete: bool) -> Row:
    """Judge the best candidates of a run, also those of entities without a counterpart."""
    metrics = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    known = {source for source, _ in given}
    candidates = list(_candidates(run))
    present = {source for source, _, _, _ in candidates}
    linked = ({source for source, _ in gold} & present) - known
    probs = []
    right = []
    answered = []
    for source, target, stated, is_shown in candidates:
        if target and source not in known and (is_complete or source in linked):
            probs.append(stated)
            right.append((source, target) in gold)
            answered.append(is_shown)
    prob, is_right, is_answer = (
        np.array(probs),
        np.array(right, bool),
        np.array(answered, bool),
    )
    num_right = int(is_right[is_answer].sum())
    precision = num_right / max(1, int(is_answer.sum()))
    recall = num_right / max(1, len(linked))
    band = (prob >= 0.9) & (prob < 0.99)
    bins = reliability_bins(prob, is_right)
    decoys = metrics.get("decoys") or {}
    export = metrics["export"]
    num_open = export["num_answered"] + export["num_unmatched"]
    true_share = len(linked) / num_open if is_complete else None
    low, high = decoys.get("share_low"), decoys.get("share_high")
    found = {
        "answers": int(is_answer.sum()),
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / max(1e-9, precision + recall),
        "calibration_error": expected_calibration_error(bins) if bins else 0.0,
        "band_right": float(is_right[band].mean()) if band.any() else None,
        "band_answers": int(band.sum()),
        "share": decoys.get("share"),
        "share_low": low,
        "share_high": high,
        "true_share": true_share,
        "covers": None
        if low is None or true_share is None
        else low <= true_share <= high,
        "reached": export["reached"],
        "precision_low": export["precision_low"],
        "expected": decoys.get("expected_precision"),
        "is_by_decoys": bool(decoys),
    }
    return {
        name: round(value, 4) if isinstance(value, float) else value
        for name, value in found.items()
    }


def _candidates(run: Path) -> Iterator[tuple[str, str, float, bool]]:
    """Yield source, best candidate or "", probability, and whether it is an answer."""
    for name in ("alignment.tsv", "unmatched.tsv"):
        path = run / name
        if not path.exists():
            continue
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            next(rows)
            for source, target, prob, *_ in rows:
                yield source, target, float(prob or 0), name == "alignment.tsv"


ANSWERS = (
    "| cell | answers | precision | recall | F1 | error | .9-.99 | share, true | CPU s |\n"
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
)
SHARES = (
    "| cell | answers | true | estimate | interval |\n"
    "| --- | ---: | ---: | ---: | --- |"
)
HEADS = {"answer": ANSWERS, "links": ANSWERS, "share": SHARES}
"""Headings of the tables of a page by kind."""


def _kind(row: Row) -> str:
    """Return the table to which a row belongs."""
    return "links" if row["links"] else str(row["measured"])


def write_tables(page: Path, rows: Sequence[Row]) -> None:
    """Replace the tables between ``<!-- KIND -->`` and ``<!-- end -->`` for each kind."""
    text = page.read_text(encoding="utf-8")
    for kind, head in HEADS.items():
        body = [_line(row) for row in rows if _kind(row) == kind]
        new = "\n".join([f"<!-- {kind} -->", head, *body, "<!-- end -->"])
        pattern = rf"<!-- {kind} -->.*?<!-- end -->"
        literal = new.replace("\\", r"\\")  # not a reference to a group
        text, count = re.subn(pattern, literal, text, flags=re.DOTALL)
        if not count:
            raise UserError(f"{page} has no <!-- {kind} --> for its table.")
    write_atomic(page, text.encode())


def _line(row: Row) -> str:
    """Return a row of a table."""
    if row["measured"] == "share":
        missed = " (missed)" if row["covers"] is False else ""
        interval = f"{_text(row['share_low'])} to {_text(row['share_high'])}{missed}"
        cells = [_text(row["true_share"]), _text(row["share"]), interval]
        return f"| {row['cell']} | {row['answers']:,} | {' | '.join(cells)} |"
    scores = ("precision", "recall", "f1", "calibration_error")
    cells = [_text(row[name]) for name in scores]
    cells.append(f"{_text(row['band_right'])} ({row['band_answers']})")
    interval = f"({_text(row['share_low'])} to {_text(row['share_high'])})"
    cells.append(f"{_text(row['share'])} {interval}, {_text(row['true_share'])}")
    return f"| {row['cell']} | {row['answers']:,} | {' | '.join(cells)} | {row['cpu_seconds']} |"


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
