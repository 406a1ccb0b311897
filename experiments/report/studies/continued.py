"""Sections about continued runs: suggested labels, and growing graphs."""

from experiments.report.columns import Count, Difference, Measured
from experiments.report.methods import ONE_TO_ONE, Method, Source, part_of_benchmark
from experiments.report.studies.common import percent
from experiments.report.study_spec import Column, Row, Section, TableSpec

LABEL_RATIO = 0.01
LABEL_PAIRS = ("dbp15k_ja", "dbp15k_fr")
QUESTIONS = (50, 100, 200)
MORE = 1.5
"""Random links for each question in the column to which suggestions are compared."""

LABELS_NOTE = (
    "`python -m benchmarks suggested-labels`: `em=one_to_one` with RREA starts from 1% of the "
    "links. Labels "
    "are then added in three rounds, and `emea update` continues the run after each. *suggested* "
    "asks about the entities of `emea suggest`; *training links* shows how many links it has in "
    "total, because entities without a counterpart bring none. *random* has as many random links "
    "as there were questions, and *random, 1.5 times* has half as many again, in the same number "
    "of rounds. *no labels* continues without new links. If *margin* is at least 0, suggestions "
    "reach the same Hit@1 with a third fewer labels. Half of the source entities are never asked "
    "about, and all runs are evaluated on the test links of these entities. They are fewer than in "
    "the other tables, so Hit@1 is higher."
)


def _asked(data: str, count: int) -> Row:
    """Return the row of a pair after some questions."""
    more = round(MORE * count)
    numbers = {"suggested": count, "random": count, "more": more, "control": count}
    marks = {
        arm: f"labels {arm} {number}"
        for arm, number in (*numbers.items(), ("start", 0))
    }
    fill = {arm: part_of_benchmark(ONE_TO_ONE, mark) for arm, mark in marks.items()}
    return Row((data, str(count)), data, LABEL_RATIO, fill=fill)


def _part(
    title: str, part: str, path: str = "", form: str = "{:.3f}", spread: bool = True
) -> Measured:
    return Measured(
        title, method=part, path=path, form=form, spread=spread, empty="", in_csv=False
    )


LABEL_COLUMNS: tuple[Column, ...] = (
    _part("at the start", "start", spread=False),
    _part("no labels", "control", spread=False),
    _part("suggested", "suggested"),
    _part("random", "random"),
    _part("random, 1.5 times", "more"),
    Difference("gain", "suggested", "random"),
    Difference("margin", "suggested", "random, 1.5 times"),
    _part("training links", "suggested", "num_links.train", "{:.0f}", spread=False),
    Count("splits", ("suggested",)),
)

GROWN_PAIRS = (("contea_fr_en", 0.2), ("synthetic", 0.1))
GROWTH = (0.01, 0.1)
"""Shares of triples that are new in the later version."""

GROWTH_NOTE = (
    "`python -m benchmarks growing-graphs`: a run aligns an earlier version of both graphs, which "
    "lacks some "
    "triples. `emea update` then continues it on the complete graphs (*update*), and a new run "
    "aligns them from the beginning (*new run*). Both have the same links. Seconds are without the "
    "reading of the graphs."
)


def _grown(data: str, ratio: float, share: float) -> Row:
    any_run = Method("", "", (Source({"method": "emea"}),))
    fill = {
        part: part_of_benchmark(any_run, f"growth {part} {percent(share)}")
        for part in ("update", "fresh")
    }
    return Row((data, percent(share)), data, ratio, fill=fill)


GROWTH_COLUMNS: tuple[Column, ...] = (
    _part("new run", "fresh"),
    _part("update", "update"),
    Difference("difference", "update", "new run"),
    _part("seconds, new run", "fresh", "seconds.total", "{:.0f}", spread=False),
    _part("seconds, update", "update", "seconds.total", "{:.0f}", spread=False),
    Difference("time", "seconds, update", "seconds, new run", "{:+.0%}", relative=True),
    Count("splits", ("update",)),
)

CONTINUED_SECTIONS = (
    Section(
        "Suggested and random labels",
        LABELS_NOTE,
        TableSpec(
            ("pair", "questions"),
            tuple(_asked(data, count) for data in LABEL_PAIRS for count in QUESTIONS),
            LABEL_COLUMNS,
            splits=0,
            in_csv=False,
        ),
        optional=True,
    ),
    Section(
        "Growing graphs",
        GROWTH_NOTE,
        TableSpec(
            ("pair", "new triples"),
            tuple(
                _grown(data, ratio, share)
                for data, ratio in GROWN_PAIRS
                for share in GROWTH
            ),
            GROWTH_COLUMNS,
            splits=0,
            in_csv=False,
        ),
        optional=True,
    ),
)
