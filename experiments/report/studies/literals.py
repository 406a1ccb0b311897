"""The study of literals: alignment without links, and names in addition to structure."""

from itertools import product

from experiments.report.columns import Difference, Measured
from experiments.report.methods import (
    LIGHTEA_NAMES,
    NAMES,
    NAMES_WITHOUT_LINKS,
    READ_NAMES,
    STRUCTURE,
    UNREAD_NAMES,
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
ENCODED: Places = (
    *product(("dbp15k_fr", "dbp15k_ja", "dbp15k_zh"), (0.0, 0.01, 0.05, 0.3)),
    ("D_Y_15K_V1", 0.0),
)
ENCODED_NOTE = (
    "`em=one_to_one ensemble=independent literals=similar`, three RREA and one LightEA, which "
    "`emea align` chooses for these pairs on a GPU. Without links (0%), F1 counts the entities "
    "that have a gold link. With links, the column is Hit@1 among test targets. *not "
    "transliterated* is `literals.transliterate=never`. Five runs shared a GPU."
)
ON_A_CPU: Places = (("dbp15k_fr", 0.0), ("dbp15k_ja", 0.0), ("dbp15k_zh", 0.0))
ON_A_CPU_NOTE = (
    "`model=lightea em=one_to_one em.iterations=3 literals=similar split=none`, which `emea align` "
    "chooses for these pairs on a CPU. Japanese is read with `pykakasi`. Seconds are on two cores "
    "that other work used at times."
)
NAMES_NOTE = (
    "These runs use names and other literals. **Do not compare them with results from structure "
    "only:** on many benchmarks, names are nearly the answer. *equal values* is the share of the "
    "test links that unambiguous equal values find by themselves. DBP15K and D_Y have names from "
    "the IRIs of the entities (`data.iri_names=true`); zh and ja have them in Chinese and "
    "Japanese, so few are equal. Each cell is one run."
)
NO_LINKS_NOTE = (
    "`method=paris literals=similar`, all links are test links. Precision, recall and F1 count the "
    "entities that have a gold link. *F1, all answers* also counts answers for entities without a "
    "gold link as wrong: the gold links of the restaurants cover restaurants, but not their "
    "addresses, which are aligned, too. PARIS reports F1 .91 for the restaurants and 1.00 for the "
    "persons."
)
LABELLED_NOTE = (
    "`model=lightea em=dual em.iterations=1 literals=similar`, Hit@1 among test targets. *gain* is "
    "the difference to the same run without names. Seconds are on two cores, which other "
    "processes used at the same time."
)


def _of(method: Method, title: str, path: str = "{stage}.hit@1", form: str = "{:.3f}") -> Measured:
    return Measured(title, method=method, path=path, form=form, empty="", in_csv=False)


LITERALS = StudySpec(
    "literals",
    "Names and other literals",
    NAMES_NOTE,
    (
        Section(
            "Without links",
            NO_LINKS_NOTE,
            TableSpec(
                ("pair", "ratio"),
                at(NO_LINKS),
                (
                    _of(NAMES_WITHOUT_LINKS, "precision", "export.test.precision"),
                    _of(NAMES_WITHOUT_LINKS, "recall", "export.test.recall"),
                    _of(NAMES_WITHOUT_LINKS, "F1", "export.test.f1"),
                    _of(NAMES_WITHOUT_LINKS, "F1, all answers", "answer.f1"),
                    _of(NAMES_WITHOUT_LINKS, "equal values", "literals.anchor_recall"),
                    _of(NAMES_WITHOUT_LINKS, "their precision", "literals.anchor_precision"),
                    _of(NAMES_WITHOUT_LINKS, "seconds", "seconds.total", "{:.0f}"),
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
            "Without links, on a CPU",
            ON_A_CPU_NOTE,
            TableSpec(
                ("pair", "ratio"),
                at(ON_A_CPU),
                (
                    _of(LIGHTEA_NAMES, "precision", "export.test.precision"),
                    _of(LIGHTEA_NAMES, "recall", "export.test.recall"),
                    _of(LIGHTEA_NAMES, "F1", "export.test.f1"),
                    _of(LIGHTEA_NAMES, "seconds", "seconds.total", "{:.0f}"),
                ),
                splits=0,
                in_csv=False,
            ),
        ),
        Section(
            "With links",
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
