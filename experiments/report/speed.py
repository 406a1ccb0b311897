"""Measured times and memory as tables."""

from collections.abc import Callable
from pathlib import Path

from experiments.archive.measurements import Measurement, read_measurements
from experiments.origins import machine_of, short_commit
from experiments.report.report import Part, Report, text_table

Columns = dict[str, Callable[[Measurement], str]]

IN_COLUMNS = (
    *(
        "data",
        "data.num_entities",
        "ratio",
        "model",
        "em",
        "search",
        "trainer",
        "tracking",
    ),
    *("em.iterations", "model.initial_epochs", "model.epochs_per_iteration"),
)
"""Settings that other columns show, or that do not change results."""

ORIGIN: Columns = {"machine": machine_of, "commit": short_commit}
STEPS: Columns = {
    "pair": lambda run: str(run["data"]),
    "device": lambda run: str(run["device"]),
    "ms per step": lambda run: f"{run['ms_per_step']:.1f}",
    "candidate search, s": lambda run: f"{run['search_s']:.2f}",
    "M- and E-step, s": lambda run: f"{run['joint_s']:.2f}",
    "peak memory, MB": lambda run: f"{run['peak_memory_mb']:.0f}",
    **ORIGIN,
}


def _pair(run: Measurement) -> str:
    size = run["overrides"].split("num_entities=")
    return (
        run["data"]
        if len(size) == 1
        else f"{run['data']} {int(size[1].split()[0]):,} x 2"
    )


def _search(run: Measurement) -> str:
    recall = run["search_recall"]
    how = "exact" if recall is None else f"{run['search']}, recall {recall:.3f}"
    return f"{run['search_s']:.1f} ({how})"


def _other_settings(run: Measurement) -> str:
    others = [
        text
        for text in run["overrides"].split()
        if text.split("=")[0] not in IN_COLUMNS
    ]
    return f"`{' '.join(others)}`" if others else ""


WHOLE_RUNS: Columns = {
    "pair": _pair,
    "ratio": lambda run: f"{run['ratio']:.0%}",
    "model": lambda run: str(run["model"]),
    "em": lambda run: str(run["em"]),
    "epochs": lambda run: str(run["epochs"]),
    "whole run, s": lambda run: f"{run['total_s']:.1f}",
    "training, s": lambda run: f"{run['neural_s']:.1f}",
    "search, s": _search,
    "M- and E-step, s": lambda run: f"{run['joint_s']:.1f}",
    "peak memory, GB": lambda run: f"{run['peak_memory_mb'] / 1024:.1f}",
    "Hit@1 before and after EM": lambda run: (
        f"{run['initial']['hit@1']:.3f}, {run['final']['hit@1']:.3f} ({run['protocol']})"
    ),
    "other settings": _other_settings,
    **ORIGIN,
}
HUB_PHASES = {
    "candidate table": "table",
    "join of neighbours": "evidence",
    "propagation": "propagation",
    "AvoidConf": "avoid_conflict",
    "explanation": "explanation",
    "memory, MB": "memory_mb",
}
"""Titles of the phases of ``python -m benchmarks hubs``, and of the memory that all of them add."""

TEXT = (
    "device",
    "machine",
    "commit",
    "other settings",
    "epochs",
    "em",
    "model",
    "ratio",
)


def speed_report(folder: Path) -> Report:
    """Return the report of the benchmarks that are recorded in a folder."""
    steps, whole = _load(folder, "run_parts"), _load(folder, "whole_run")
    whole.sort(key=lambda run: float(run["total_s"]))
    parts = [_part("One training step and one E-step", STEPS, steps)]
    if whole:
        parts.append(_part("Whole runs", WHOLE_RUNS, whole))
    parts += [_hubs(run) for run in _load(folder, "hubs")]
    sentences = [_compared(run) for run in _load(folder, "compare")]
    sentences += [_default_run(run) for run in _load(folder, "default_run")]
    sentences += [_start_up(run) for run in _load(folder, "start_up")]
    sentences += [_overhead(run) for run in _load(folder, "overhead")]
    if sentences:
        parts.append(Part("Comparisons", "\n\n".join(sentences)))
    note = "Measured by `python -m benchmarks`. Memory is GPU memory, or host memory on a CPU."
    return Report("speed", "Time and memory", note, tuple(parts), is_experiment=False)


def _part(title: str, columns: Columns, runs: list[Measurement]) -> Part:
    key, *titles = columns
    rows = [[show(run) for show in columns.values()] for run in runs]
    return Part(title, "", text_table([key], titles, rows, TEXT))


def _hubs(run: Measurement) -> Part:
    """Return a table of the phases by the degree of a matched pair of hubs."""
    degrees = run["degrees"]
    rows = [
        [
            title,
            *(
                f"{numbers[key]:.{0 if 'MB' in title else 2}f}"
                for numbers in degrees.values()
            ),
        ]
        for title, key in HUB_PHASES.items()
    ]
    table = text_table(["phase"], [f"{int(degree):,}" for degree in degrees], rows, ())
    note = (
        "CPU seconds of one thread for two graphs with one matched hub, by its number of "
        f"neighbours, and the memory that graphs and phases add to the process ({_origin(run)})."
    )
    return Part("Hubs", note, table)


def _load(folder: Path, kind: str) -> list[Measurement]:
    return list(read_measurements(folder, f"{kind}_").values())


def _origin(run: Measurement) -> str:
    return f"{machine_of(run)}, commit {short_commit(run)}"


def _compared(run: Measurement) -> str:
    return (
        f"On {run['pair']} ({_origin(run)}), a training step is {run['step ratio']:.1f} times "
        "faster than the same layer with materialised edges, and the PARIS rule is "
        f"{run['joint ratio']:.0f} times faster than a loop over candidates. Time grows with size "
        f"to the power {run['exponent of the step']:.2f} (step), "
        f"{run['exponent of the joint module']:.2f} (rule) and "
        f"{run['exponent of the exact candidate search']:.2f} (exact search). Measured with "
        "`python -m benchmarks compare`."
    )


def _default_run(run: Measurement) -> str:
    return (
        f"After installation, `make run` takes {run['seconds']:.0f} s ({_origin(run)}) and "
        f"improves Hit@1 from {run['initial']['hit@1']:.3f} (neural model) to "
        f"{run['final']['hit@1']:.3f} (EMEA, protocol {run['protocol']})."
    )


def _start_up(run: Measurement) -> str:
    return (
        f"`emea align` takes {run['align_s']:.1f} s for two graphs with 100 entities, and "
        f"{run['first_align_s']:.1f} s the first time, without compiled loops from earlier runs. "
        f"`import emea.aligner` takes {run['import_s']:.1f} s ({_origin(run)})."
    )


def _overhead(run: Measurement) -> str:
    return (
        f"In a tracked run of {run['total_s']:.0f} s ({run['overrides'] or 'default settings'}), "
        f"Lightning takes {run['lightning_s']:.1f} s, MLflow {run['mlflow_s']:.1f} s, and "
        f"checkpoints and files {run['checkpoints_and_files_s']:.1f} s, "
        f"{run['share_of_overhead']:.0%} in total. `emea --help` answers after {run['help_s']:.1f} "
        f"s, and `import emea` takes {run['import_s']:.2f} s ({_origin(run)})."
    )
