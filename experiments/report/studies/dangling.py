"""The study of source entities without a counterpart."""

from collections.abc import Sequence

from experiments.report.columns import Measured
from experiments.report.methods import ENSEMBLE, THREE_LIGHTEA, Method
from experiments.report.studies.common import at
from experiments.report.study_spec import Section, StudySpec, TableSpec

OPENEA = ("D_Y", "EN_FR", "EN_DE")
PAIRS = ("zh", "ja", "fr", *OPENEA)
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


ON_A_CPU_NOTE = (
    "The same with three LightEA encoders, which `emea align` uses on a CPU (`em.iterations=2 "
    "ensemble.shared_fits=1`). These runs have the present estimate of the share."
)


def _columns(method: Method) -> tuple[Measured, ...]:
    def of(title: str, path: str, form: str = "{:.3f}") -> Measured:
        return Measured(title, path=path, method=method, form=form, empty="", in_csv=False)

    return (
        of("Hit@1", "{stage}.hit@1"),
        of("recall at .90", "sources.recall_at_precision.0.9"),
        of("recall at .95", "sources.recall_at_precision.0.95"),
        of("F1, all answers", "sources.f1"),
        of("calibration error", "sources.ece"),
        of("detection", "sources.detection.auc"),
        of("share", "counterparts.source.value", "{:.2f}"),
    )


def _table(method: Method, pairs: Sequence[str], shares: Sequence[int]) -> TableSpec:
    places = at(tuple((f"{pair}_{share}", 0.2) for pair in pairs for share in shares))
    return TableSpec(("pair", "ratio"), places, _columns(method), in_csv=False)


DANGLING = StudySpec(
    "dangling",
    "Entities without a counterpart",
    NOTE,
    (
        Section(
            "Probabilities over all source entities", COLUMNS_NOTE, _table(ENSEMBLE, PAIRS, DELETED)
        ),
        Section("On a CPU", ON_A_CPU_NOTE, _table(THREE_LIGHTEA, OPENEA, (0, 40))),
    ),
)
