"""Runs many cells of a study in one process and packs their records.

    python -m experiments.batch OUT --data zh fr ja --ratio 0.01 0.05 --split-seed 0 1 2
    python -m experiments.batch OUT --cells experiments/models/cells.txt --part 0/3

In the first form the neural model of every cell is trained once; each protocol's EM run starts
from its weights. In the second a file names the runs, one per line: ``name key=value ...``, where
``@name`` stands for the checkpoint of an earlier run. Lines that belong together stand together;
blank lines part them, and ``--part i/n`` takes every n-th such group, for n processes at once.
Cells whose records exist are passed over, and none is started after ``--budget`` seconds.
"""

import argparse
import json
import logging
import re
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import groupby, product
from pathlib import Path
from typing import Any

import numpy as np

from emea.errors import UserError
from emea.pipeline.overrides import composed
from emea.pipeline.run_files import (
    CHECKPOINT_FILE,
    CONFIG_FILE,
    METRICS_FILE,
    RANKS_FILE,
    config_text,
)
from emea.pipeline.schema import register_schema

logger = logging.getLogger("experiments.batch")

KEPT = ("config.yaml", "metrics.json", "run.json", "series.jsonl")
"""Files of a run that are kept as they are; of its ranks the final ones are, too."""


def main(arguments: list[str] | None = None) -> None:
    """Run the cells, print a table, pack the records."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
    register_schema()
    deadline = time.monotonic() + options.budget
    for cell in [] if options.table else cells(options):
        if time.monotonic() > deadline:
            logger.warning("out of time: cells are missing")
            break
        cell()
    print(table(options.out))
    if options.pack:
        pack(options.out, options.pack)


def cells(options: argparse.Namespace) -> list[Callable[[], None]]:
    """What there is to run."""
    if options.cells is None:
        chosen = product(options.split_seed, options.ratio, options.data)
        return [partial(run_cell, options, data, ratio, seed) for seed, ratio, data in chosen]
    part, num_parts = (int(number) for number in options.part.split("/"))
    groups = line_groups(options.cells.read_text(encoding="utf-8"))[part::num_parts]
    shared = ["tracking=none", f"study={options.study}", *options.override]
    return [partial(run_line, line, options.out, shared) for group in groups for line in group]


def line_groups(text: str) -> list[list[str]]:
    """Lines between blank lines, remarks left out."""
    lines = [line.partition("#")[0].strip() for line in text.splitlines() if line[:1] != "#"]
    groups = [list(group) for filled, group in groupby(lines, key=bool) if filled]
    return groups


def run_line(line: str, out: Path, shared: list[str]) -> None:
    """The run a line names; a failure is told and does not stop the others."""
    name, *overrides = line.split()
    found = [re.sub(r"@([\w.-]+)", rf"{out}/\1/{CHECKPOINT_FILE}", text) for text in overrides]
    try:
        run([*shared, *found], out / name)
    except Exception:
        logger.exception("%s failed", name)


def run_cell(options: argparse.Namespace, data: str, ratio: str, split_seed: int) -> None:
    """The neural model, then EM from its weights under each protocol; or a baseline alone."""
    name = f"{data}-{ratio}-s{split_seed}"
    shared = [f"data={data}", f"ratio={ratio}", f"split_seed={split_seed}", "tracking=none"]
    shared += [f"study={options.study}"]
    if options.method != "emea":
        method = [f"method={options.method}", *options.override]
        run([*shared, *method], options.out / f"{name}-{options.method}-strict")
        return
    of_em = [text for text in options.override if text.lstrip("+~").startswith(("em.", "rule"))]
    shared += [text for text in options.override if text not in of_em]
    neural = options.out / f"{name}-neural"
    run([*shared, "em=none"], neural)
    checkpoint = neural / CHECKPOINT_FILE
    for protocol in options.protocol:
        extra = [f"protocol={protocol}", f"em={options.em}", f"initial_from={checkpoint}", *of_em]
        run([*shared, *extra], options.out / f"{name}-{options.em}-{protocol}")


def run(overrides: list[str], folder: Path) -> None:
    """One run, unless its records are there already."""
    from emea.pipeline.job import run_job

    config = composed(overrides)
    if (folder / METRICS_FILE).exists():
        if (folder / CONFIG_FILE).read_text(encoding="utf-8") != config_text(config):
            raise UserError(f"{folder} holds a run of another configuration; choose another folder")
        return
    logger.info("%s: %s", folder.name, " ".join(overrides))
    run_job(config, folder)


def table(out: Path) -> str:
    """One line per recorded run."""
    lines = ["run  hit@1  hit@10  mrr  mr  joint-hit@1  train-s  search-s  joint-s  peak-MB"]
    for file in sorted(out.glob(f"*/{METRICS_FILE}")):
        lines.append(_row(file.parent.name, json.loads(file.read_text())))
    return "\n".join(lines)


def _row(name: str, metrics: dict[str, Any]) -> str:
    final, last = metrics["final"], metrics["history"][-1]
    joint = f"{last['joint']['hit@1']:.4f}" if last["joint"] else "-"
    seconds = [entry["seconds"] for entry in metrics["history"]]
    spent = "  ".join(
        f"{sum(entry[part] for entry in seconds):.2f}" for part in ("neural", "search", "joint")
    )
    forms = {"hit@1": "{:.4f}", "hit@10": "{:.4f}", "mrr": "{:.4f}", "mr": "{:.1f}"}
    values = "  ".join(
        "n/a" if final[key] is None else form.format(final[key]) for key, form in forms.items()
    )
    return f"{name}  {values}  {joint}  {spent}  {metrics['peak_memory_mb']:.0f}"


def pack(out: Path, archive: Path) -> None:
    """The records of all runs in one archive, to be unpacked into a study's ``records``."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w:gz") as tar, tempfile.TemporaryDirectory() as scratch:
        for metrics in sorted(out.glob(f"*/{METRICS_FILE}")):
            folder = metrics.parent
            for name in KEPT:
                tar.add(folder / name, arcname=f"{folder.name}/{name}")
            ranks = Path(scratch) / RANKS_FILE
            with np.load(folder / RANKS_FILE) as arrays:
                final = arrays["final_in_pool"].astype(np.float32)
            np.savez_compressed(ranks, final_in_pool=final)
            tar.add(ranks, arcname=f"{folder.name}/{RANKS_FILE}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="folder of the run folders")
    parser.add_argument("--data", nargs="+", default=["zh"])
    parser.add_argument("--ratio", nargs="+", default=["0.01"])
    parser.add_argument("--split-seed", nargs="+", type=int, default=[0])
    parser.add_argument("--protocol", nargs="*", default=["strict", "released"])
    parser.add_argument("--em", default="paper")
    parser.add_argument("--cells", type=Path, help="file that names the runs, one per line")
    parser.add_argument("--part", default="0/1", help="which of the file's groups: i/n")
    parser.add_argument("--method", default="emea", help="a baseline: paris, prase")
    parser.add_argument("--study", default="batch", help="MLflow experiment of the runs")
    parser.add_argument("--budget", type=float, default=1e9, help="seconds to start cells in")
    parser.add_argument("--table", action="store_true", help="run nothing, only tell and pack")
    parser.add_argument("--pack", type=Path, help="archive for the records")
    parser.add_argument("--override", nargs="*", default=[], help="further key=value")
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
