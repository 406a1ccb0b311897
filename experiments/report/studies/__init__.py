"""The studies as data: one specification per table, figure and extension.

To add a report, add a :class:`~experiments.report.study_spec.StudySpec` to ``STUDIES``.
"""

from experiments.report.studies.choice import CHOICE
from experiments.report.studies.dangling import DANGLING
from experiments.report.studies.dual import DUAL_STUDY
from experiments.report.studies.figures import (
    FIGURE4,
    FIGURE5,
    FIGURE6,
    FIGURE7,
    FIGURE8,
)
from experiments.report.studies.literals import LITERALS
from experiments.report.studies.ontologies import ONTOLOGIES
from experiments.report.studies.suite import SUITE
from experiments.report.studies.tables import TABLE1, TABLE2, TABLE3, TABLE4, TABLE5

STUDIES = {
    spec.name: spec
    for spec in (
        TABLE1,
        TABLE2,
        TABLE3,
        TABLE4,
        TABLE5,
        FIGURE4,
        FIGURE5,
        FIGURE6,
        FIGURE7,
        FIGURE8,
        DUAL_STUDY,
        LITERALS,
        DANGLING,
        CHOICE,
        ONTOLOGIES,
        SUITE,
    )
}
