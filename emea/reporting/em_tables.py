"""Fig. 4 and Fig. 6 of the paper as tables: EM over other models, and with other rules."""

from collections.abc import Iterable, Sequence

from emea.reporting.em_runs import PAIR, Setting, em_runs, row, setting
from emea.reporting.markdown import markdown_table
from emea.reporting.records import RecordedRun

RULES = ("paris", "avoid_conflict", "paris_avoid_conflict")
TRAININGS = ("sup", "semi")


def all_settings(runs: Iterable[RecordedRun], last_rows: Iterable[list[str]] = ()) -> str:
    """Every setting that was run."""
    runs = em_runs(runs)
    return _table(runs, sorted({setting(run) for run in runs}), last_rows)


def over_models(runs: Iterable[RecordedRun], models: Iterable[str]) -> str:
    """Fig. 4: PARIS as the rule, supervised; models that were not run keep a row.

    Args:
        runs: of any kind.
        models: names of the models to expect.
    """
    runs = [run for run in em_runs(runs) if setting(run)[2:4] == ("sup", "paris")]
    missing = set(models) - {run.metrics["model"] for run in runs}
    empty = [Setting(PAIR, model, "sup", "paris", "strict") for model in missing]
    return _table(runs, sorted([*{setting(run) for run in runs}, *empty]))


def over_rules(runs: Iterable[RecordedRun]) -> str:
    """Fig. 6: sets of rules over RREA, strict, in both training modes."""
    runs = [run for run in em_runs(runs) if run.metrics["protocol"] == "strict"]
    runs = [run for run in runs if run.metrics["model"] == "rrea"]
    settings = []
    for training in TRAININGS:
        for rule in RULES:
            of_rule = [run for run in runs if run.metrics["rule"] == rule]
            found = {setting(run) for run in of_rule if run.metrics["training"] == training}
            settings += sorted(found) or [Setting(PAIR, "rrea", training, rule, "strict")]
    return _table(runs, settings)


def ratios_of(runs: Iterable[RecordedRun]) -> list[float]:
    """The columns: every share of labels that was run."""
    return sorted({run.metrics["ratio"] for run in em_runs(runs)})


def _table(
    runs: list[RecordedRun], settings: Sequence[Setting], last_rows: Iterable[list[str]] = ()
) -> str:
    ratios = ratios_of(runs)
    titles = ["pair", "model", "training", "rule", "protocol", *(f"{r:.0%}" for r in ratios)]
    rows = [row(runs, wanted, ratios) for wanted in settings]
    return markdown_table(titles, [*rows, *last_rows], num_left=5)
