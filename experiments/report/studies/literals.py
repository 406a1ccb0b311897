"""The study of literals: alignment without links, and names in addition to structure."""

from itertools import product

from experiments.report.columns import Difference, Measured
from experiments.report.methods import (
    LIGHTEA_NAMES,
    NAMES,
    PARIS_NAMES,
    READ_NAMES,
    STRUCTURE,
    UNREAD_NAMES,
    UNREAD_PARIS_NAMES,
    Method,
)
from experiments.report.records import official
from experiments.report.studies.common import at
from experiments.report.study_spec import Places, Section, StudySpec, TableSpec

NO_LINKS: Places = (
    ("oaei_restaurants", 0.0),
    ("oaei_persons1", 0.0),
    ("dbp15k_fr", 0.0),
    ("dbp15k_ja", 0.0),
    ("dbp15k_zh", 0.0),
    ("D_Y_15K_V1", 0.0),
)
LABELLED: Places = (
    ("dbp15k_fr", 0.01),
    ("dbp15k_fr", 0.3),
    ("dbp15k_ja", 0.01),
    ("dbp15k_ja", 0.3),
    ("dbp15k_zh", 0.01),
    ("dbp15k_zh", 0.3),
    ("D_Y_15K_V1", 0.01),
    (official("D_Y_15K_V1"), 0.2),
)
ENCODED: Places = tuple(
    product(("dbp15k_fr", "dbp15k_ja", "dbp15k_zh"), (0.0, 0.01, 0.05, 0.3))
)
ENCODED_NOTE = (
    "`em=one_to_one ensemble=independent literals=similar`, three RREA and one LightEA, which "
    "`emea align` chooses for these pairs on a GPU. Without links (0%), F1 counts the entities "
    "that have a gold link. With links, Hit@1 counts ranks among test targets. Several runs shared "
    "a GPU."
)
ON_A_CPU_NOTE = (
    "`model=lightea em=one_to_one em.iterations=3 literals=similar`, which `emea align` chooses "
    "for DBP15K without links on a CPU. F1 and Hit@1 as above. Seconds without links are on two "
    "cores that other work used at times; with links, a run used one core."
)
NAMES_NOTE = (
    "These runs use names and other literals. **Do not compare them with results from structure "
    "only:** on many benchmarks, names are nearly the answer. *anchors* are pairs that equal, "
    "transliterated or similar values suggest; their recall is the share of the test links among "
    "them. DBP15K and D_Y have names from the IRIs of the entities (`data.iri_names=true`), which "
    "are Chinese in zh and Japanese in ja. If the scripts of both graphs differ, names are "
    "transliterated, Japanese ones with `pykakasi`; *not transliterated* is "
    "`literals.transliterate=never`. A cell is one run, unless it has a standard deviation."
)
NO_LINKS_NOTE = (
    "`method=paris literals=similar`, all links are test links. Precision, recall and F1 count the "
    "entities that have a gold link. *F1, all answers* also counts answers for entities without a "
    "gold link as wrong: the gold links of the restaurants cover restaurants, but not their "
    "addresses, which are aligned, too. PARIS reports F1 .91 for the restaurants and 1.00 for the "
    "persons."
)
LABELLED_NOTE = (
    "`model=lightea em=dual em.iterations=1 literals=similar` before names were transliterated "
    "(commits 41220db5 and 581d42dc): Hit@1 among test targets. *gain* is the difference to the "
    "same run without names. *equal values* is the share of the test links that unambiguous equal "
    "values find by themselves. Seconds are on two cores, which other processes used at the same "
    "time."
)


def _of(
    method: Method, title: str, path: str = "{stage}.hit@1", form: str = "{:.3f}"
) -> Measured:
    return Measured(title, method=method, path=path, form=form, empty="", in_csv=False)


LITERALS = StudySpec(
    "literals",
    "Names and other literals",
    NAMES_NOTE,
    (
        Section(
            "PARIS without links",
            NO_LINKS_NOTE,
            TableSpec(
                ("pair", "ratio"),
                at(NO_LINKS),
                (
                    _of(PARIS_NAMES, "precision", "export.test.precision"),
                    _of(PARIS_NAMES, "recall", "export.test.recall"),
                    _of(PARIS_NAMES, "F1", "export.test.f1"),
                    _of(UNREAD_PARIS_NAMES, "F1, not transliterated", "export.test.f1"),
                    _of(PARIS_NAMES, "F1, all answers", "answer.f1"),
                    _of(PARIS_NAMES, "anchors' recall", "literals.anchor_recall"),
                    _of(PARIS_NAMES, "their precision", "literals.anchor_precision"),
                    _of(PARIS_NAMES, "seconds", "seconds.total", "{:.0f}"),
                ),
                splits=0,
                in_csv=False,
            ),
        ),
        Section(
            "Four encoders",
            ENCODED_NOTE,
            TableSpec(
                ("pair", "ratio"),
                at(ENCODED),
                (
                    _of(READ_NAMES, "F1", "export.test.f1"),
                    _of(UNREAD_NAMES, "F1, not transliterated", "export.test.f1"),
                    _of(READ_NAMES, "Hit@1"),
                    _of(UNREAD_NAMES, "Hit@1, not transliterated"),
                    _of(READ_NAMES, "anchors' recall", "literals.anchor_recall"),
                    _of(READ_NAMES, "their precision", "literals.anchor_precision"),
                    _of(READ_NAMES, "estimated", "literals.anchor_precision_estimate"),
                    _of(READ_NAMES, "seconds", "seconds.total", "{:.0f}"),
                ),
                splits=0,
                in_csv=False,
            ),
        ),
        Section(
            "LightEA on a CPU",
            ON_A_CPU_NOTE,
            TableSpec(
                ("pair", "ratio"),
                at((*ENCODED, ("D_Y_15K_V1", 0.0))),
                (
                    _of(LIGHTEA_NAMES, "F1", "export.test.f1"),
                    _of(LIGHTEA_NAMES, "Hit@1"),
                    _of(LIGHTEA_NAMES, "seconds", "seconds.total", "{:.0f}"),
                ),
                splits=0,
                in_csv=False,
            ),
        ),
        Section(
            "With links, earlier version",
            LABELLED_NOTE,
            TableSpec(
                ("pair", "ratio"),
                at(LABELLED),
                (
                    _of(NAMES, "with names"),
                    Difference("gain", "with names", Measured("", method=STRUCTURE)),
                    _of(NAMES, "equal values", "literals.anchor_recall"),
                    _of(NAMES, "seconds", "seconds.total", "{:.0f}"),
                ),
                splits=0,
                in_csv=False,
            ),
        ),
    ),
)
