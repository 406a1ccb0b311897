"""Tables 4 and 5 of the paper: how long each part of EMEA takes."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, stdev

from emea.reporting.comparison import NOT_RUN
from emea.reporting.markdown import load_paper_numbers, machine_of, markdown_table
from emea.reporting.methods import EMEA, USUAL, Method, runs_of
from emea.reporting.records import RecordedRun, run_links
from emea.reporting.study import RATIOS, Study

ITERATIONS_AT_100K = 5
REMARK = (
    "*first* is the first training, *neural* the training in an EM iteration, *joint* candidate "
    "search, M- and E-step in one: mean ± standard deviation over iterations, of *first* over "
    "runs. A cell is timed by the table's own runs, which follow one another in one process (the "
    "first of them loads the kernels); only where it has none, by others, which may have shared "
    "their GPU, and whose first model may have come from another run's weights, without a first "
    "training of its own. The paper's server had three GTX 2080Ti and was shared."
)
OTHER_PAIR = (
    "The paper's pair, dbp_wd of DWY100K, is not at hand: `contea_fr_en` has about as many "
    "entities. The paper prints minutes; they are seconds here."
)
AT_100K = Method(
    "EMEA", "emea", EMEA.sources, EMEA.protocols, USUAL | {"em.iterations": ITERATIONS_AT_100K}
)


def table4(runs: Sequence[RecordedRun], folder: Path) -> Study:
    """DBP15K zh."""
    rows = _rows(runs, folder, EMEA, "dbp15k_zh", "dbp15k_zh", unit=1)
    title = "Table 4: seconds of each part of EMEA on DBP15K zh"
    return Study("table4", title, (REMARK, _table(rows)))


def table5(runs: Sequence[RecordedRun], folder: Path) -> Study:
    """A pair of 100K entities."""
    rows = _rows(runs, folder, AT_100K, "contea_fr_en", "dwy100k_dbp_wd", unit=60)
    title = "Table 5: seconds of each part of EMEA at 100K entities"
    return Study("table5", title, (OTHER_PAIR, REMARK, _table(rows)))


def _table(rows: list[list[str]]) -> str:
    titles = ["pair", "ratio", "first, paper", "neural, paper", "joint, paper"]
    return markdown_table(
        [*titles, "first", "neural", "joint", "machine", "runs"], rows, num_left=2
    )


def _rows(
    runs: Sequence[RecordedRun], folder: Path, method: Method, data: str, printed: str, unit: int
) -> list[list[str]]:
    paper = load_paper_numbers(folder / "paper.csv")
    rows = []
    for ratio in RATIOS:
        numbers = paper[printed, ratio, "emea"]
        cells = [_printed(numbers, part, unit) for part in ("initial", "neural", "joint")]
        found = [one.run for one in runs_of(runs, method, "strict", data, ratio).values()]
        own = [run for run in found if run.is_own]
        rows.append([data, f"{ratio:.0%}", *cells, *_measured(own or found)])
    return rows


def _printed(numbers: dict[str, float], part: str, unit: int) -> str:
    deviation = numbers.get(f"{part}_sd")
    spread = "" if deviation is None else f" ± {unit * deviation:.0f}"
    return f"{unit * numbers[part]:.0f}{spread}"


def _measured(runs: list[RecordedRun]) -> list[str]:
    if not runs:
        return ["", NOT_RUN, NOT_RUN, "", ""]
    firsts = [run.metrics["history"][0]["seconds"]["neural"] for run in runs if _trained(run)]
    later = [entry["seconds"] for run in runs for entry in run.metrics["history"][1:]]
    neural = [seconds["neural"] for seconds in later]
    joint = [seconds["search"] + seconds["joint"] for seconds in later]
    machines = ", ".join(sorted({machine_of(run.header["tags"]) for run in runs}))
    return [
        _spread(firsts) if firsts else "",
        _spread(neural),
        _spread(joint),
        machines,
        run_links(runs),
    ]


def _trained(run: RecordedRun) -> bool:
    return run.header["params"].get("initial_from") is None


def _spread(seconds: list[float]) -> str:
    deviation = f" ± {stdev(seconds):.2f}" if len(seconds) > 1 else ""
    return f"{fmean(seconds):.2f}{deviation}"
