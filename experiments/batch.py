"""Runs the cells of an experiment in one process and adds them to a study.

    python -m experiments batch table2 data=zh ratio=0.01,0.05 --out outputs/table2 --part 0/2

This runs the same jobs as ``python run.py -m experiment=table2 data=zh ratio=0.01,0.05``, but
without MLflow, for machines on which it is not installed. ``--part i/n`` selects every n-th group
of cells, for n parallel processes. With ``--share-first``, cells that differ only in EM form a
group and start from the same first training. Cells whose records exist are skipped, and no cell is
started after ``--budget`` seconds.
"""

import argparse
import hashlib
import json
import logging
import re
import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, OmegaConf

from emea.config.command_line import assignments, with_sweep
from emea.config.composition import composed, quote_numeric_choices
from emea.errors import UserError
from emea.record.file_names import CHECKPOINT_FILE
from emea.record.provenance import code_state
from emea.record.run_folder import METRICS_FILE, read_config
from experiments.archive.packing import packed_runs
from experiments.archive.study import add_runs
from experiments.archive.study_files import PackedRun
from experiments.origins import is_of_committed_code

logger = logging.getLogger("experiments.batch")

UNCOMMITTED = (
    "reports will leave these runs out: their code is not known to be committed (commit it; in a "
    "copy without git, set EMEA_COMMIT=<commit> and EMEA_DIRTY=false)"
)


def jobs(experiment: str, overrides: Sequence[str] = ()) -> list[list[str]]:
    """Return the overrides of each job of an experiment, in the order of the sweep.

    Args:
        experiment: An option of the group ``experiment``.
        overrides: Overrides as on the command line; they replace values of the sweep.
    """
    arguments = with_sweep(["-m", f"experiment={experiment}", *overrides])[1:]
    parsed = OverridesParser.create().parse_overrides(arguments)
    return [list(job) for job in product(*map(assignments, parsed))]


def main(arguments: list[str] | None = None) -> int:
    """Run the cells, print a table and record the runs; the status is 1 if any run is missing."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S"
    )
    deadline = time.monotonic() + options.budget
    if not options.table and not is_of_committed_code(code_state()):
        logger.warning(UNCOMMITTED)
    missing = 0
    for name, overrides in [] if options.table else cells(options):
        if time.monotonic() > deadline:
            logger.warning("out of time: cells are missing")
            missing += 1
            break
        try:
            run(overrides, options.out / name)
        except Exception:
            logger.exception("%s failed", name)  # and does not stop the others
            missing += 1
    print(table(options.out))
    if options.record:
        print(
            f"{options.record}: added {len(record(options.out, options.record))} runs"
        )
    return 1 if missing else 0


def cells(options: argparse.Namespace) -> list[tuple[str, list[str]]]:
    """Return names and overrides of the runs of this part, in order."""
    part, num_parts = options.part
    overrides = quote_numeric_choices(
        [*options.overrides, "tracking=none", "skip_recorded=false"]
    )
    groups: dict[str, list[list[str]]] = {}
    for job in jobs(options.experiment, overrides):
        key = first_training(composed(job)) if options.share_first else None
        groups.setdefault(key or cell_name(job), []).append(job)
    chosen = list(groups.values())[part::num_parts]
    return [
        cell for group in chosen for cell in (_shared(group, options) or _named(group))
    ]


def first_training(config: DictConfig) -> str | None:
    """Return the settings that determine the first training; ``None`` if it cannot be shared."""
    if (
        config.method.reasoner is not None
        or not config.em.iterations
        or config.training.turns
    ):
        return None
    keys = [
        "data",
        "literals",
        "split",
        "ratio",
        "model",
        "ensemble",
        "seed",
        "split_seed",
    ]
    return OmegaConf.to_yaml(OmegaConf.masked_copy(config, keys), resolve=True)


def cell_name(job: list[str]) -> str:
    """Return the name of a folder: pair, ratio, split, then the other swept settings."""
    chosen = dict(text.split("=", 1) for text in job)
    for key in ("experiment", "tracking", "skip_recorded"):
        chosen.pop(key, None)
    first = [chosen.pop("data", "data"), chosen.pop("ratio", "").strip("'")]
    first.append(f"s{chosen.pop('split_seed', 0)}")
    rest = [
        re.sub(r"[^\w.]+", "_", value).strip("_") or "usual"
        for value in chosen.values()
    ]
    return "-".join(part for part in [*first, *rest] if part)


def _named(group: list[list[str]]) -> list[tuple[str, list[str]]]:
    return [(cell_name(job), job) for job in group]


def _shared(
    group: list[list[str]], options: argparse.Namespace
) -> list[tuple[str, list[str]]] | None:
    """Return the cells of a group after the cell of its first training, if they share it."""
    if len(group) < 2 or not options.share_first:
        return None
    # the jobs of a group have the same settings for the first training
    first = [
        text for text in group[0] if not text.startswith(("em", "protocol=", "rule"))
    ]
    kept = [text for text in first if not text.startswith("variant=")]
    digest = hashlib.sha256(
        str(first_training(composed(group[0]))).encode()
    ).hexdigest()[:8]
    name = f"{cell_name(kept)}-first-{digest}"
    checkpoint = options.out / name / CHECKPOINT_FILE
    later = [[*job, f"initial_from={checkpoint}"] for job in group]
    named = [(cell_name(job), there) for job, there in zip(group, later, strict=True)]
    alone = [
        "em=none",
        "em.iterations=0",
        "rule=none",
    ]  # the experiment may set iterations itself
    return [(name, [*kept, *_model(group[0]), *alone]), *named]


def _model(job: list[str]) -> list[str]:
    """Return the model that a job's variant chose, if any."""
    chosen = any(text.startswith("model=") for text in job)
    return [] if chosen else [f"model={composed(job).model.name}"]


def run(overrides: list[str], folder: Path) -> None:
    """Run one cell, unless its records exist."""
    from emea.run.job import run_job

    config = composed(overrides)
    if (folder / METRICS_FILE).exists():
        recorded = OmegaConf.to_container(read_config(folder))
        if recorded != OmegaConf.to_container(config, resolve=True):
            raise UserError(
                f"{folder} holds a run of another configuration; choose another folder"
            )
        return
    logger.info("%s: %s", folder.name, " ".join(overrides))
    run_job(config, folder)


def table(out: Path) -> str:
    """Return a table with one line per recorded run."""
    lines = [
        "run  hit@1  hit@10  mrr  mr  joint-hit@1  train-s  search-s  joint-s  peak-MB"
    ]
    for file in sorted(out.glob(f"*/{METRICS_FILE}")):
        lines.append(_row(file.parent.name, json.loads(file.read_text())))
    return "\n".join(lines)


def _row(name: str, metrics: dict[str, Any]) -> str:
    final, last = metrics["final"], metrics["history"][-1]
    joint = f"{last['joint']['hit@1']:.4f}" if last["joint"] else "-"
    seconds = [entry["seconds"] for entry in metrics["history"]]
    spent = "  ".join(
        f"{sum(entry[part] for entry in seconds):.2f}"
        for part in ("neural", "search", "joint")
    )
    forms = {"hit@1": "{:.4f}", "hit@10": "{:.4f}", "mrr": "{:.4f}", "mr": "{:.1f}"}
    values = "  ".join(
        "n/a" if final[key] is None else form.format(final[key])
        for key, form in forms.items()
    )
    return f"{name}  {values}  {joint}  {spent}  {metrics['peak_memory_mb']:.0f}"


def record(out: Path, study: Path) -> list[str]:
    """Add all finished runs to a study, and return the names of new runs."""
    packed: dict[str, PackedRun] = {}
    for metrics in sorted(out.glob(f"*/{METRICS_FILE}")):
        packed |= packed_runs(metrics.parent)
    return add_runs(study, packed)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments batch", description=__doc__
    )
    parser.add_argument("experiment", help="an option of conf/experiment")
    parser.add_argument("overrides", nargs="*", help="as for run.py -m")
    parser.add_argument(
        "--out", type=Path, required=True, help="folder of the run folders"
    )
    parser.add_argument(
        "--part",
        type=_part,
        default="0/1",
        help="which of the groups: i/n, i from 0 to n - 1",
    )
    parser.add_argument(
        "--share-first", action="store_true", help="train first models once"
    )
    parser.add_argument(
        "--budget", type=float, default=1e9, help="seconds to start cells in"
    )
    parser.add_argument(
        "--table", action="store_true", help="run nothing, only print and record"
    )
    parser.add_argument(
        "--record", type=Path, help="folder of a study to add finished runs to"
    )
    return parser


def _part(text: str) -> tuple[int, int]:
    part, _, num_parts = text.partition("/")
    if not (part.isdecimal() and num_parts.isdecimal() and int(part) < int(num_parts)):
        raise argparse.ArgumentTypeError(
            f"it must be i/n with i from 0 to n - 1, got {text}"
        )
    return int(part), int(num_parts)
