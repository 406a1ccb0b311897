"""Figures 4 to 8 of the paper."""

from itertools import product

from experiments.report.columns import Count, Difference, Measured
from experiments.report.line_charts import Chart
from experiments.report.methods import (
    BOTH,
    EMEA,
    EMEA_COMPATIBLE,
    PARIS,
    emea_over,
    emea_with,
)
from experiments.report.studies.common import ZH, percent, under_both
from experiments.report.study_spec import RATIOS, Row, Section, StudySpec, TableSpec
from experiments.report.violins import violins

SLOW = tuple(product(("alinet", "iptranse"), (1, 10)))
MODELS = {
    key: emea_over(*key)
    for key in (("rrea", 10), ("dual_amn", 10), *SLOW, ("lightea", 10))
}
"""Figure 4: EMEA over each neural model and number of EM iterations; LightEA is ours."""

RULES = {
    "paris": "PARIS",
    "avoid_conflict": "AvoidConf",
    "paris_avoid_conflict": "both",
}
TRAININGS = {"sup": "supervised", "semi": "semi-supervised"}
WITH_RULE = {
    (training, rule): emea_with(rule, training)
    for training, rule in product(TRAININGS, RULES)
}
"""Figure 6: EMEA with each set of rules, by training mode."""

VARIED = {
    "K": ("em.num_candidates", "paris", (5, 10, 20, 50)),
    "K, dense evidence": ("em.num_candidates", "paris", (5, 10, 20, 50)),
    "N": ("rule.num_neighbours", "avoid_conflict", (5, 10, 15, 20)),
}
"""Figure 7: the setting behind each symbol, the rule it was varied with, and its values."""

DENSE = {"em.evidence": "dense"}
SENSITIVITY = {
    (symbol, value): emea_with(
        rule,
        settings={key: value} | (DENSE if symbol.endswith("dense evidence") else {}),
    )
    for symbol, (key, rule, values) in VARIED.items()
    for value in values
}
SENSITIVITY_RATIOS = (0.01, 0.05, 0.1)


FIGURE4 = StudySpec(
    "figure4",
    "Figure 4: EMEA over other models",
    "Hit@1 among test targets on DBP15K zh, before EM (*model*) and after it (*EMEA*), next to "
    "PARIS, which answers among all targets. LightEA is not in the paper. Runs have ten EM "
    "iterations and K = 10. AliNet and IPTransE have K = 50 and train from scratch in every "
    "iteration, which takes long. Their runs have one iteration, or ten with the early stopping of "
    "the released runners (patience 2, on a fifth of the labels): that PARIS beats them after one "
    "iteration does not contradict the paper.",
    under_both(
        "Hit@1",
        TableSpec(
            ("model", "ratio"),
            tuple(
                Row((method.label, percent(ratio)), ZH, ratio, method)
                for method, ratio in product(MODELS.values(), RATIOS)
            ),
            (
                Measured("model", stage="initial"),
                Measured("EMEA"),
                Difference("lift", "EMEA", "model"),
                Measured("PARIS", method=PARIS, counts=False, in_csv=False),
            ),
        ),
    ),
    (
        Chart(
            "dbp15k_zh, strict",
            0,
            "ratio",
            ("model", "EMEA", "PARIS"),
            panel="model",
            y_range=(0, 1),
        ),
    ),
)

FIGURE5 = StudySpec(
    "figure5",
    "Figure 5: the neural model and the joint distribution over EM iterations",
    "Hit@1 among test targets of both parts of EMEA on DBP15K zh. Iteration 0 is the first model "
    "and the joint distribution computed from it.",
    (
        Section(
            "",
            "",
            TableSpec(
                ("labels and protocol", "iteration"),
                tuple(
                    Row(
                        (f"{percent(ratio)}, {protocol}", str(iteration)),
                        ZH,
                        ratio,
                        EMEA,
                        protocol,
                        {"iteration": iteration},
                    )
                    for ratio, protocol, iteration in product(
                        (0.01, 0.05), BOTH, range(11)
                    )
                ),
                (
                    Measured("neural model", path="history.{iteration}.neural.hit@1"),
                    Measured(
                        "joint distribution", path="history.{iteration}.joint.hit@1"
                    ),
                ),
            ),
        ),
    ),
    (
        Chart(
            "dbp15k_zh",
            0,
            "iteration",
            ("neural model", "joint distribution"),
            x_title="EM iteration",
            panel="labels and protocol",
        ),
    ),
)

FIGURE6 = StudySpec(
    "figure6",
    "Figure 6: sets of rules",
    "Hit@1 among test targets on DBP15K zh: RREA before EM, and EMEA with each set of rules. "
    "*both* combines PARIS and AvoidConf with one weight per rule. The paper has no such run. It "
    "stays below PARIS, by far with few labels.",
    under_both(
        "Hit@1",
        TableSpec(
            ("training", "ratio"),
            tuple(
                Row(
                    (name, percent(ratio)),
                    ZH,
                    ratio,
                    fill={rule: WITH_RULE[training, rule] for rule in RULES},
                )
                for (training, name), ratio in product(TRAININGS.items(), RATIOS)
            ),
            (
                Measured("RREA", method="avoid_conflict", stage="initial"),
                *(Measured(name, method=rule) for rule, name in RULES.items()),
            ),
        ),
    ),
    (
        Chart(
            "dbp15k_zh, strict", 0, "ratio", ("RREA", *RULES.values()), panel="training"
        ),
    ),
)

FIGURE7 = StudySpec(
    "figure7",
    "Figure 7: sensitivity to K and N",
    "EMEA over RREA on DBP15K zh, among test targets, with K candidates per entity (PARIS rule) "
    "and N neighbours (AvoidConf). At each ratio, all values use the same splits. Lower MR is "
    "better. Repeated training varies, so ignore differences of a few thousandths between values "
    "whose runs differ in their first training or commit (see `experiments/README.md`).",
    under_both(
        "Hit@1 and mean rank",
        TableSpec(
            ("parameter", "value", "ratio"),
            tuple(
                Row(
                    (f"{symbol}, {RULES[rule]}", str(value), percent(ratio)),
                    ZH,
                    ratio,
                    SENSITIVITY[symbol, value],
                )
                for symbol, (_, rule, values) in VARIED.items()
                for ratio, value in product(SENSITIVITY_RATIOS, values)
            ),
            (Measured("Hit@1"), Measured("MR", "mr")),
            common=("parameter", "ratio"),
        ),
    ),
    (
        Chart(
            "Hit@1 (dbp15k_zh, strict)",
            0,
            "value",
            ("Hit@1",),
            series="ratio",
            panel="parameter",
            x_title="value of the parameter",
        ),
        Chart(
            "Mean rank, lower is better",
            0,
            "value",
            ("MR",),
            "MR",
            series="ratio",
            panel="parameter",
            x_title="value of the parameter",
        ),
    ),
)

COMPATIBILITY = {"initial": "RREA", "final": "EMEA", "oracle": "oracle"}
FIGURE8 = StudySpec(
    "figure8",
    "Figure 8: compatibility and conflicts",
    "PARIS compatibility (Eq. 19) of each test entity's predicted counterpart, given the "
    "predictions for its neighbours: by RREA before EM, by EMEA after it, and by an oracle that "
    "predicts the true links. The numbers are not fully comparable: each mapping is judged with "
    "the relation inclusions that it implies, and the oracle maps linked entities only, while a "
    "model maps all. This may be why EMEA, which is trained for compatibility, can exceed the "
    "oracle. Conflicts are the share of predictions whose target is also predicted for another "
    "linked entity; the oracle has none.",
    under_both(
        "Compatibility and conflicts",
        TableSpec(
            ("labels",),
            tuple(
                Row((percent(ratio),), ZH, ratio, EMEA_COMPATIBLE) for ratio in RATIOS
            ),
            (
                *(
                    Measured(
                        f"compatibility, {name}", path=f"compatibility.{stage}.mean"
                    )
                    for stage, name in COMPATIBILITY.items()
                ),
                *(
                    Measured(
                        f"conflicts, {name}", path=f"compatibility.{stage}.conflicts"
                    )
                    for stage, name in list(COMPATIBILITY.items())[:2]
                ),
                Count("splits", ("compatibility, RREA",)),
            ),
            splits=0,
        ),
    ),
    (
        Chart(
            "Mean compatibility (dbp15k_zh, strict)",
            0,
            "labels",
            tuple(f"compatibility, {name}" for name in COMPATIBILITY.values()),
            "mean compatibility",
            names={f"compatibility, {name}": name for name in COMPATIBILITY.values()},
            y_range=(0, 1),
        ),
        Chart(
            "Conflicting predictions",
            0,
            "labels",
            ("conflicts, RREA", "conflicts, EMEA"),
            "share of predictions",
            names={f"conflicts, {name}": name for name in COMPATIBILITY.values()},
            y_range=(0, 1),
        ),
    ),
    pictures=(violins,),
)
