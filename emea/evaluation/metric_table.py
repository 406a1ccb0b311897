"""The metrics of a ranking: how each is computed, what it is called and where it is shown.

To add a metric, add an entry to `RANKING_METRICS`, and a field to `Evaluation` if the entry says
``in_python``. Tables, files and MLflow follow, so no other module lists metrics.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy.typing as npt

from emea.data.arrays import FloatArray

STAGES = {
    "initial": "initial",
    "final": "final",
    "one_to_one": "one-to-one",
    "validation": "validation",
}
"""Where the links are ranked, and its title: before EM, after it, after one-to-one inference, and
the validation links after EM. All but the last are sections of ``metrics.json``."""


@dataclass(frozen=True)
class RankingMetric:
    """A metric of the ranks of links.

    Args:
        name: Its key in ``metrics.json``.
        title: Its name in tables.
        of_links: Returns the value of each link from its rank. Their mean is the metric.
        missed: Returns the value of a link that no method can find from the worst rank.
        digits: Number of digits after the decimal point.
        higher_is_better: Whether a higher value is better.
        in_log: Whether the log line of each iteration shows it.
        in_charts: Whether MLflow shows it as a chart over the iterations.
        in_tables: Whether the table of a run shows it, on the terminal and in MLflow.
        in_python: Whether `Aligner.evaluate` returns it.
        after_one_to_one: Whether it is computed after one-to-one inference. A mean rank is not,
            because a target that is not a candidate has no rank.
        is_tested: Whether ``emea compare`` tests its difference link by link.
        compared: Sections of ``metrics.json`` whose values ``emea compare`` shows.
        swept: Stages with a column in the table of a sweep and in its CSV file.
        reported: Stages with a column in ``emea report``.
        tracked: Stages with a column in MLflow's table of runs and of a sweep.
    """

    name: str
    title: str
    of_links: Callable[[FloatArray], npt.NDArray[Any]]
    missed: Callable[[int], float]
    digits: int = 4
    higher_is_better: bool = True
    in_log: bool = False
    in_charts: bool = False
    in_tables: bool = False
    in_python: bool = False
    after_one_to_one: bool = False
    is_tested: bool = False
    compared: tuple[str, ...] = ("initial", "final", "final.all_targets")
    swept: tuple[str, ...] = ()
    reported: tuple[str, ...] = ()
    tracked: tuple[str, ...] = ()

    @property
    def form(self) -> str:
        """The format of its values, such as ``{:.4f}``."""
        return f"{{:.{self.digits}f}}"

    @property
    def attribute(self) -> str:
        """Its name as an attribute and in MLflow, such as ``hit_at_1``."""
        return self.name.replace("@", "_at_")


RANKING_METRICS = (
    RankingMetric(
        name="hit@1",
        title="Hit@1",
        of_links=lambda ranks: ranks <= 1,
        missed=lambda worst: 0.0,
        in_log=True,
        in_charts=True,
        in_tables=True,
        in_python=True,
        after_one_to_one=True,
        is_tested=True,
        compared=("initial", "final", "final.all_targets", "one_to_one"),
        swept=("initial", "final", "one_to_one", "validation"),
        reported=("initial", "final", "one_to_one"),
        tracked=("initial", "final"),
    ),
    RankingMetric(
        name="hit@5",
        title="Hit@5",
        of_links=lambda ranks: ranks <= 5,
        missed=lambda worst: 0.0,
        in_python=True,
    ),
    RankingMetric(
        name="hit@10",
        title="Hit@10",
        of_links=lambda ranks: ranks <= 10,
        missed=lambda worst: 0.0,
        in_tables=True,
        in_python=True,
        after_one_to_one=True,
    ),
    RankingMetric(
        name="mrr",
        title="MRR",
        of_links=lambda ranks: 1 / ranks,
        missed=lambda worst: 1 / worst,
        in_charts=True,
        in_tables=True,
        in_python=True,
        after_one_to_one=True,
        is_tested=True,
        swept=("final",),
        reported=("final",),
        tracked=("final",),
    ),
    RankingMetric(
        name="mr",
        title="MR",
        of_links=lambda ranks: ranks,
        missed=float,
        digits=1,
        higher_is_better=False,
        in_log=True,
        in_tables=True,
        reported=("final",),
    ),
)
"""All metrics of a ranking, in the order in which files and tables have them."""

BY_NAME = {metric.name: metric for metric in RANKING_METRICS}

IN_TABLES = tuple(metric for metric in RANKING_METRICS if metric.in_tables)
"""Metrics in the table of a run."""


class MetricColumn(NamedTuple):
    """A metric at one stage of a run, as a column of a table."""

    metric: RankingMetric
    stage: str

    @property
    def path(self) -> str:
        """Its place in ``metrics.json``, such as ``final.hit@1``."""
        return f"{self.stage}.{self.metric.name}"

    @property
    def title(self) -> str:
        """Its title, such as ``final Hit@1``."""
        return f"{STAGES[self.stage]} {self.metric.title}"

    @property
    def attribute(self) -> str:
        """Its name in a CSV file, such as ``final_hit_at_1``."""
        return f"{self.stage}_{self.metric.attribute}"

    @property
    def in_mlflow(self) -> str:
        """Its name in MLflow, such as ``final/hit_at_1``."""
        return f"{self.stage}/{self.metric.attribute}"


def _columns(
    stages_of: Callable[[RankingMetric], tuple[str, ...]],
) -> tuple[MetricColumn, ...]:
    """Return the columns of a table, metric by metric; those of validation links come last."""
    found = [
        MetricColumn(metric, stage)
        for metric in RANKING_METRICS
        for stage in stages_of(metric)
    ]
    return tuple(sorted(found, key=lambda column: column.stage == "validation"))


SWEPT = _columns(lambda metric: metric.swept)
REPORTED = _columns(lambda metric: metric.reported)
TRACKED = _columns(lambda metric: metric.tracked)


def listed_titles(columns: Iterable[MetricColumn]) -> str:
    """Return the titles of the metrics of some columns, each once, such as ``Hit@1 and MRR``."""
    *others, last = dict.fromkeys(column.metric.title for column in columns)
    return f"{', '.join(others)} and {last}" if others else last


class Evaluation(NamedTuple):
    """Metrics on links that ``fit`` was not given.

    Attributes:
        hit_at_1: Share of the links whose target is ranked first.
        hit_at_5: Share of the links whose target is among the first 5.
        hit_at_10: Share of the links whose target is among the first 10.
        mrr: Mean reciprocal rank of the links' targets.
        precision: Share of the matches that are correct, among the links' source entities.
        recall: Share of the links that are matched correctly.
        f1: Harmonic mean of precision and recall.
        num_links: Number of evaluated links.
        num_answered: Number of their source entities that have a match.
        num_known: Number of ignored links, whose source entity ``fit`` was given a link for.
    """

    hit_at_1: float
    hit_at_5: float
    hit_at_10: float
    mrr: float
    precision: float
    recall: float
    f1: float
    num_links: int
    num_answered: int
    num_known: int
