"""The studies as data: one specification per table, figure and extension.

To add a report, add a :class:`~emea.results.study.StudySpec` to ``STUDIES``.
"""

from emea.results.studies.dual import DUAL_STUDY
from emea.results.studies.figures import FIGURE4, FIGURE5, FIGURE6, FIGURE7, FIGURE8
from emea.results.studies.literals import LITERALS
from emea.results.studies.tables import TABLE1, TABLE2, TABLE3, TABLE4, TABLE5

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
    )
}
