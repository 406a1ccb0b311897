"""Measured times and memory as a table."""

from pathlib import Path

from emea.record.measurements import Measurement, read_measurements
from emea.reporting.markdown import machine_of, markdown_table, short_commit

COLUMNS = {
    "data": ("pair", "{}"),
    "device": ("device", "{}"),
    "ms_per_step": ("ms per step", "{:.1f}"),
    "search_s": ("candidate search, s", "{:.2f}"),
    "joint_s": ("M- and E-step, s", "{:.2f}"),
    "peak_memory_mb": ("peak memory, MB", "{:.0f}"),
}


WHOLE_RUN = (
    "pair",
    "ratio",
    "model",
    "em",
    "epochs",
    "whole run, s",
    "training, s",
    "search, s",
    "M- and E-step, s",
    "peak memory, GB",
    "Hit@1 before and after EM",
    "other settings",
)
IN_COLUMNS = ("data", "data.num_entities", "ratio", "model", "em", "search")
IN_EPOCHS = ("em.iterations", "model.initial_epochs", "model.epochs_per_iteration")
NO_MATTER = ("trainer", "tracking")
"""Settings that other columns tell, or that change no result."""


def speed_tables(folder: Path) -> str:
    """What the benchmarks recorded."""
    parts = read_measurements(folder, "run_parts_").values()
    titles = [title for title, _ in COLUMNS.values()] + ["machine", "commit"]
    rows = [
        [*(form.format(part[key]) for key, (_, form) in COLUMNS.items()), *_origin(part)]
        for part in parts
    ]
    table = markdown_table(titles, rows, num_left=2)
    compared = [_compared(run) for run in read_measurements(folder, "compare_").values()]
    default = [_default_run(run) for run in read_measurements(folder, "default_run_").values()]
    shares = [_shares(run) for run in read_measurements(folder, "overhead_").values()]
    return "\n\n".join([table, *_whole_runs(folder), *compared, *default, *shares])


def _whole_runs(folder: Path) -> list[str]:
    runs = list(read_measurements(folder, "whole_run_").values())
    if not runs:
        return []
    runs.sort(key=lambda run: float(run["total_s"]))
    rows = [[*_whole_run(run), *_origin(run)] for run in runs]
    return [markdown_table([*WHOLE_RUN, "machine", "commit"], rows, num_left=5)]


def _whole_run(run: Measurement) -> list[str]:
    recall = run["search_recall"]
    search = "exact" if recall is None else f"{run['search']}, recall {recall:.3f}"
    size = run["overrides"].split("num_entities=")
    name = run["data"] if len(size) == 1 else f"{run['data']} {int(size[1].split()[0]):,} x 2"
    return [
        name,
        f"{run['ratio']:.0%}",
        run["model"],
        run["em"],
        run["epochs"],
        f"{run['total_s']:.1f}",
        f"{run['neural_s']:.1f}",
        f"{run['search_s']:.1f} ({search})",
        f"{run['joint_s']:.1f}",
        f"{run['peak_memory_mb'] / 1024:.1f}",
        f"{run['initial']['hit@1']:.3f}, {run['final']['hit@1']:.3f} ({run['protocol']})",
        _other_settings(run["overrides"]),
    ]


def _other_settings(overrides: str) -> str:
    elsewhere = (*IN_COLUMNS, *IN_EPOCHS, *NO_MATTER)
    told = [text for text in overrides.split() if text.split("=")[0] not in elsewhere]
    return f"`{' '.join(told)}`" if told else ""


def _shares(run: Measurement) -> str:
    machine, commit = _origin(run)
    return (
        f"Of a tracked run ({run['overrides'] or 'the default'}) Lightning takes "
        f"{run['lightning_s']:.1f} s, MLflow {run['mlflow_s']:.1f} s, checkpoints and files "
        f"{run['checkpoints_and_files_s']:.1f} s of {run['total_s']:.0f} s "
        f"({run['share_of_overhead']:.0%}); `--help` answers after {run['help_s']:.1f} s, "
        f"`import emea` takes {run['import_s']:.2f} s ({machine}, commit {commit})."
    )


def _compared(run: Measurement) -> str:
    machine, commit = _origin(run)
    return (
        f"On {machine} ({run['pair']}): a step is {run['step ratio']:.1f} times faster than the "
        f"edge-materialising form of the same layer, the PARIS rule {run['joint ratio']:.0f} times "
        f"faster than a loop over candidates; time grows with size to the power "
        f"{run['exponent of the step']:.2f} (step), {run['exponent of the joint module']:.2f} "
        f"(rule) and {run['exponent of the exact candidate search']:.2f} (exact search), measured "
        f"side by side by `emea bench compare`, commit {commit}."
    )


def _default_run(run: Measurement) -> str:
    machine, commit = _origin(run)
    return (
        f"`make run` after the install: {run['seconds']:.0f} s on {machine}, Hit@1 "
        f"{run['initial']['hit@1']:.3f} (neural model) to {run['final']['hit@1']:.3f} (EMEA), "
        f"protocol {run['protocol']}, commit {commit}."
    )


def _origin(numbers: Measurement) -> tuple[str, str]:
    return machine_of(numbers), short_commit(numbers)
