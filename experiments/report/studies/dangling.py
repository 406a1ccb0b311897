"""The study of source entities without a counterpart."""

from experiments.report.columns import Measured
from experiments.report.methods import ENSEMBLE
from experiments.report.studies.common import at
from experiments.report.study_spec import Section, StudySpec, TableSpec

PAIRS = ("zh", "ja", "fr", "D_Y", "EN_FR", "EN_DE")
DELETED = (0, 20, 40)
"""Percentages of the links whose target entities were deleted."""

NOTE = (
    "The target entities of 0, 20 or 40% of the links were deleted with their triples, so that "
    "their source entities have no counterpart; `zh_40` is zh with 40% deleted. 20% of the links "
    "that are left are labels. All test entities and the entities that lost their counterpart are "
    "judged, three RREA encoders with `em=one_to_one ensemble=independent`."
)
COLUMNS_NOTE = (
    "*recall at .90* is the largest recall over all thresholds at which the true precision is at "
    "least .90. *calibration error* is the expected calibration error of the stated probabilities. "
    "*detection* is the area under the ROC curve of the probability as a detector of entities with "
    "a counterpart. *share* is the estimated share of the unlabelled source entities that have a "
    "counterpart in the target graph."
)


def _of(title: str, path: str) -> Measured:
    return Measured(title, path=f"sources.{path}", method=ENSEMBLE, empty="", in_csv=False)


DANGLING = StudySpec(
    "dangling",
    "Entities without a counterpart",
    NOTE,
    (
        Section(
            "Probabilities over all source entities",
            COLUMNS_NOTE,
            TableSpec(
                ("pair", "ratio"),
                at(tuple((f"{pair}_{share}", 0.2) for pair in PAIRS for share in DELETED)),
                (
                    Measured("Hit@1", method=ENSEMBLE),
                    _of("recall at .90", "recall_at_precision.0.9"),
                    _of("recall at .95", "recall_at_precision.0.95"),
                    _of("F1, all answers", "f1"),
                    _of("calibration error", "ece"),
                    _of("detection", "detection.auc"),
                    Measured(
                        "share",
                        path="counterparts.source.value",
                        method=ENSEMBLE,
                        form="{:.2f}",
                        empty="",
                        in_csv=False,
                    ),
                ),
                in_csv=False,
            ),
        ),
    ),
)
