"""The headline picture and table, and the small table of the README."""

from experiments.report.columns import Count, Difference, Measured, Printed
from experiments.report.line_charts import Chart
from experiments.report.methods import (
    DUAL,
    EMEA,
    ENSEMBLE,
    ONE_TO_ONE,
    PARIS,
    PRASE,
    RREA,
)
from experiments.report.records import official
from experiments.report.studies.common import ONE_ANSWER, ZH, at, percent
from experiments.report.studies.openea import LABELLED, PAIRS
from experiments.report.study_spec import (
    DBP15K_CELLS,
    Row,
    Section,
    StudySpec,
    TableSpec,
)

AGAINST_PAPER = (
    Printed("EMEA (paper)", method="emea"),
    Measured("EMEA released", method=EMEA, protocol="released"),
    Measured("EMEA strict", method=EMEA, protocol="strict"),
)
"""The columns that both tables share."""

HEADLINE = StudySpec(
    "summary",
    "Summary",
    "",
    (
        Section(
            "Hit@1 on DBP15K",
            "Among test targets (CSLS, source to target), mean ± standard deviation over splits. "
            "*paper* columns are printed in the paper, the others are our runs. zh is in-sample "
            "for `em=dual`, and all pairs are for `em=one_to_one`, see below. *four encoders* is "
            "`em=one_to_one ensemble=independent`, three RREA and one LightEA. *em=one_to_one* "
            "had no masked examples yet.",
            TableSpec(
                ("pair", "ratio"),
                at(DBP15K_CELLS),
                (
                    Printed("RREA (paper)", method="rrea"),
                    Measured("RREA", method=RREA),
                    *AGAINST_PAPER,
                    Difference("released - strict", "EMEA released", "EMEA strict"),
                    Measured("em=dual", method=DUAL),
                    Measured("em=one_to_one", method=ONE_TO_ONE),
                    Measured("four encoders", method=ENSEMBLE),
                    Count(
                        "splits",
                        (
                            "RREA",
                            "EMEA released",
                            "EMEA strict",
                            "em=dual",
                            "em=one_to_one",
                            "four encoders",
                        ),
                    ),
                ),
                splits=0,
                in_csv=False,
            ),
        ),
        Section(
            "Mean ranks on DBP15K",
            "Mean rank among test targets; lower is better. The last column of each method is the "
            "difference from the paper, as a share of the paper's number.",
            TableSpec(
                ("pair", "ratio"),
                at(DBP15K_CELLS),
                (
                    Printed("RREA (paper)", "mr", "rrea"),
                    Measured("RREA", "mr", RREA),
                    Difference(
                        "RREA, difference", "RREA", "RREA (paper)", "{:+.0%}", True
                    ),
                    Printed("EMEA (paper)", "mr", "emea"),
                    Measured("EMEA released", "mr", EMEA, "released"),
                    Difference(
                        "released, difference",
                        "EMEA released",
                        "EMEA (paper)",
                        "{:+.0%}",
                        True,
                    ),
                    Measured("EMEA strict", "mr", EMEA, "strict"),
                    Difference(
                        "strict, difference",
                        "EMEA strict",
                        "EMEA (paper)",
                        "{:+.0%}",
                        True,
                    ),
                ),
                splits=0,
                in_csv=False,
            ),
        ),
        Section(
            "PARIS and PRASE on DBP15K",
            "Both are our own implementations (settings in `conf/method`) and stronger than those "
            f"that the paper used. {ONE_ANSWER}",
            TableSpec(
                ("pair", "ratio"),
                at(DBP15K_CELLS),
                (
                    Printed("PARIS (paper)", method="paris"),
                    Measured("PARIS", method=PARIS),
                    Printed("PRASE (paper)", method="prase"),
                    Measured("PRASE", method=PRASE),
                ),
                in_csv=False,
            ),
        ),
    ),
    (
        Chart(
            "",
            0,
            "ratio",
            (
                "RREA (paper)",
                "EMEA (paper)",
                "EMEA released",
                "EMEA strict",
                "em=dual",
                "four encoders",
            ),
            panel="pair",
            names={
                "EMEA released": "EMEA, our run (released)",
                "EMEA strict": "EMEA, our run (strict)",
                "em=dual": "em=dual, our run (strict)",
                "four encoders": "four encoders, our run (strict)",
            },
            dashed=("RREA (paper)", "EMEA (paper)"),
            y_range=(0, 1),
            colours=("#8a929c", "#4d4d4d", "#0072b2", "#d55e00", "#009e73", "#cc79a7"),
        ),
    ),
    numbers="table1/paper.csv",
    prefers="table1",
)
"""The first part of the page: the headline picture and the main table."""

README_RESULTS = StudySpec(
    "readme",
    "Results",
    "",
    (
        Section(
            "",
            "",
            TableSpec(
                ("pair", "ratio"),
                (
                    *at(((ZH, 0.01), (ZH, 0.05), (ZH, 0.3), ("dbp15k_ja", 0.05))),
                    *at((("dbp15k_fr", 0.05),)),
                    *(
                        Row(
                            (official(pair), percent(LABELLED)),
                            official(pair),
                            LABELLED,
                        )
                        for pair in PAIRS
                    ),
                ),
                (
                    *AGAINST_PAPER,
                    Measured("em=dual strict", method=DUAL),
                    Measured("four encoders strict", method=ENSEMBLE),
                ),
                splits=0,
                in_csv=False,
            ),
        ),
    ),
    numbers="table1/paper.csv",
    prefers="table1",
)
"""The small table of the README."""
