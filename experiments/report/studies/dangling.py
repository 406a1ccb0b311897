"""The study of source entities without a counterpart."""

from collections.abc import Sequence

from experiments.report.columns import Measured
from experiments.report.curves import PAIRS, precision_and_recall, reliability
from experiments.report.methods import (
    DUAL,
    EMEA,
    ENSEMBLE,
    ONE_TO_ONE,
    THREE_LIGHTEA,
    WITHOUT_FOLDS,
    Method,
)
from experiments.report.studies.common import at
from experiments.report.study_spec import Row, Section, StudySpec, TableSpec

OPENEA = ("D_Y", "EN_FR", "EN_DE")
DELETED = (0, 20, 40)
"""Percentages of the links whose target entities were deleted."""

NOTE = (
    "The target entities of 0, 20 or 40% of the links were deleted with their triples, so that "
    "their source entities have no counterpart; `zh_40` is zh with 40% deleted. Target entities "
    "keep their counterparts, which makes it easier to estimate the share. A share of the links "
    "that are left (*ratio*) is labelled. All test entities and the entities that lost their "
    "counterpart are judged. Links whose target lost all its triples count as missed, also for "
    "the recall. The charts show split 0."
)
COLUMNS_NOTE = (
    "*recall at .90* is the largest recall over all thresholds at which the true precision is at "
    "least .90. *calibration error* is the expected calibration error of the stated probabilities. "
    "*detection* is the area under the ROC curve of the probability as a detector of entities with "
    "a counterpart. *share* is the estimated share of the unlabelled source entities that have a "
    "counterpart in the target graph."
)


FOUR_NOTE = (
    "`em=one_to_one ensemble=independent`: three RREA and one LightEA, each with its own EM. Means "
    "of three splits. Several runs shared a GPU."
)
METHODS_NOTE = (
    "The other methods on the same pairs, next to four encoders; means of three splits."
)
ONE_SPLIT_NOTE = "The same with 0 and 20% deleted. The other methods have one split."
ON_A_CPU_NOTE = (
    "Three LightEA encoders, which `emea align` uses on a CPU (`em.iterations=2 "
    "ensemble.shared_fits=1 ensemble.folds=true`): each is trained without a third of the training "
    "links. One split."
)
WITHOUT_FOLDS_NOTE = "The same from an earlier commit (e3154f68), without folds."


def _columns(method: Method | None) -> tuple[Measured, ...]:
    def of(title: str, path: str, form: str = "{:.3f}") -> Measured:
        return Measured(
            title, path=path, method=method, form=form, empty="", in_csv=False
        )

    return (
        of("Hit@1", "{stage}.hit@1"),
        of("recall at .90", "sources.recall_at_precision.0.9"),
        of("recall at .95", "sources.recall_at_precision.0.95"),
        of("F1, all answers", "sources.f1"),
        of("calibration error", "sources.ece"),
        of("detection", "sources.detection.auc"),
        of("share", "counterparts.source.value", "{:.2f}"),
    )


def _table(
    method: Method, pairs: Sequence[str], shares: Sequence[int], ratio: float = 0.2
) -> TableSpec:
    places = at(tuple((f"{pair}_{share}", ratio) for pair in pairs for share in shares))
    return TableSpec(("pair", "ratio"), places, _columns(method), in_csv=False)


def _of_methods(pairs: Sequence[str], shares: Sequence[int]) -> TableSpec:
    rows = tuple(
        Row((f"{pair}_{share}", method.label), f"{pair}_{share}", 0.2, method)
        for pair in pairs
        for share in shares
        for method in (EMEA, DUAL, ONE_TO_ONE, ENSEMBLE)
    )
    return TableSpec(("pair", "method"), rows, _columns(None), in_csv=False)


JUDGED = "Probabilities over all source entities"
DANGLING = StudySpec(
    "dangling",
    "Entities without a counterpart",
    NOTE,
    (
        Section(
            f"{JUDGED}, four encoders",
            f"{COLUMNS_NOTE} {FOUR_NOTE}",
            _table(ENSEMBLE, PAIRS, DELETED),
        ),
        Section(
            "With 5% of the links as labels", "", _table(ENSEMBLE, PAIRS, (0, 40), 0.05)
        ),
        Section("Other methods", METHODS_NOTE, _of_methods(PAIRS, (40,))),
        Section(
            "Other methods, fewer deleted", ONE_SPLIT_NOTE, _of_methods(PAIRS, (0, 20))
        ),
        Section("On a CPU", ON_A_CPU_NOTE, _table(THREE_LIGHTEA, PAIRS, (40,))),
        Section(
            "On a CPU, nothing deleted", "", _table(THREE_LIGHTEA, ("EN_FR",), (0,))
        ),
        Section(
            "On a CPU, without folds",
            WITHOUT_FOLDS_NOTE,
            _table(WITHOUT_FOLDS, OPENEA, (0, 40)),
        ),
    ),
    pictures=(precision_and_recall, reliability),
)
