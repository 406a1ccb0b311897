"""What the paper claims of its figures."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations, product

from emea.reporting import figure4, figure5, figure6, figure7, figure8
from emea.reporting.cells import Cell
from emea.reporting.claim import (
    SLIGHT,
    STABLE,
    STAGES,
    Case,
    Check,
    Finding,
    above,
    cell_name,
    every,
    mean_at,
    with_difference,
)
from emea.reporting.methods import EMEA, Found, means, runs_of
from emea.reporting.records import RecordedRun
from emea.reporting.study import RATIOS

OF_K, OF_N = figure7.PARAMETERS


def _models_lifted(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for model, name in figure4.MODELS.items():
        for ratio, found in figure4.found_runs(runs, model, protocol).items():
            values = [[one.run.value("hit@1", stage=stage) for one in found] for stage in STAGES]
            lifts = [above(after, before) for before, after in zip(*values, strict=True)]
            yield f"{name} {ratio:.0%}", every(lifts)  # on every split, not on average


def _better_than_both_parts(pool: str) -> Check:
    def cases(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
        paris = means(figure4.paris_runs(runs), pool=pool)
        for model, name in figure4.MODELS.items():
            before, after = _before_and_after(figure4.found_runs(runs, model, protocol), pool)
            for ratio in RATIOS:
                parts = [mean_at(cells, ratio) for cells in (before, paris)]
                holds = [above(mean_at(after, ratio), part) for part in parts]
                yield f"{name} {ratio:.0%}", every(holds)

    return cases


def _better_models_better_results(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    found = [
        _before_and_after(figure4.found_runs(runs, model, protocol)) for model in figure4.OF_PAPER
    ]
    for ratio in RATIOS:
        both = [(mean_at(before, ratio), mean_at(after, ratio)) for before, after in found]
        # models that are even before EM have no order to keep
        ordered = [above(b[1], a[1]) for a, b in permutations(both, 2) if above(b[0], a[0])]
        yield f"{ratio:.0%}", every(ordered)


def _before_and_after(
    cells: dict[float, list[Found]], pool: str = "test"
) -> list[dict[float, Cell]]:
    return [means(cells, stage=stage, pool=pool) for stage in STAGES]


def _joint_early_and_late(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for name, neural, joint in _convergence(runs, protocol):
        early = above(mean_at(joint, 0), mean_at(neural, 0))
        last = max(joint, default=0)
        yield name, every([early, above(mean_at(neural, last), mean_at(joint, last))])


def _both_parts_rise(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for name, *parts in _convergence(runs, protocol):
        rises = [above(mean_at(part, max(part, default=0)), mean_at(part, 0)) for part in parts]
        yield name, every(rises)


def _convergence(
    runs: Sequence[RecordedRun], protocol: str
) -> Iterator[tuple[str, dict[int, Cell], dict[int, Cell]]]:
    for ratio in (0.01, 0.05):
        found = [one.run for one in runs_of(runs, EMEA, protocol, figure5.DATA, ratio).values()]
        neural, joint = (figure5.convergence(found, part) for part in ("neural", "joint"))
        yield cell_name(figure5.DATA, ratio), neural, joint


def _paris_above_avoid_conflict(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for training in figure6.TRAININGS:
        rules = [
            figure6.with_rule(runs, training, rule, protocol)
            for rule in ("paris", "avoid_conflict")
        ]
        paris, avoid = (means(cells) for cells in rules)
        for ratio in RATIOS:
            yield f"{training} {ratio:.0%}", above(mean_at(paris, ratio), mean_at(avoid, ratio))


def _avoid_conflict_lifts(training: str, ratios: Sequence[float]) -> Check:
    def cases(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
        before, after = _before_and_after(
            figure6.with_rule(runs, training, "avoid_conflict", protocol)
        )
        for ratio in ratios:
            yield f"{ratio:.0%}", above(mean_at(after, ratio), mean_at(before, ratio))

    return cases


def _avoid_conflict_no_gain_for_semi(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    before, after = _before_and_after(figure6.with_rule(runs, "semi", "avoid_conflict", protocol))
    for ratio in (0.2, 0.3):
        gains = above(mean_at(after, ratio), mean_at(before, ratio), by=SLIGHT)
        yield f"{ratio:.0%}", None if gains is None else not gains


def _is_stable(parameter: figure7.Parameter, values: Sequence[int], expected: bool) -> Check:
    """Hit@1 hardly depends on which of the values a parameter has; or it does."""

    def cases(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
        for ratio in figure7.RATIOS:
            spread = _spread(runs, parameter, values, protocol, ratio)
            holds = None if spread is None else (spread < STABLE) == expected
            yield with_difference(f"{ratio:.0%}", spread, 0.0), holds

    return cases


def _fewer_labels_more_sensitive(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for few, many in pairwise(figure7.RATIOS):
        spreads = [_spread(runs, OF_K, OF_K.values, protocol, ratio) for ratio in (few, many)]
        yield with_difference(f"{few:.0%} against {many:.0%}", *spreads), above(*spreads)


def _fifty_better_than_ten(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    for ratio, metric in product(figure7.RATIOS, figure7.METRICS):
        cells = means(figure7.sensitivity(runs, OF_K, ratio, protocol), metric)
        values = [mean_at(cells, k) for k in (50, 10)]
        yield f"{ratio:.0%} {metric}", above(*(reversed(values) if metric == "mr" else values))


def _spread(
    runs: Sequence[RecordedRun],
    parameter: figure7.Parameter,
    values: Sequence[int],
    protocol: str,
    ratio: float,
) -> float | None:
    """How far Hit@1 differs over a parameter's values, where each was run."""
    cells = means(figure7.sensitivity(runs, parameter, ratio, protocol))
    hits = [mean_at(cells, value) for value in values]
    known = [hit for hit in hits if hit is not None]
    return max(known) - min(known) if len(known) == len(hits) else None


def _grows_with_labels(number: str, sign: int) -> Check:
    """A number of the predictions' compatibility grows, or falls, from one ratio to the next."""

    def cases(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
        cells = _of_predictions(runs, number, "initial", protocol)
        for few, many in pairwise(RATIOS):
            values = [mean_at(cells, ratio) for ratio in (few, many)]
            signed = [None if value is None else sign * value for value in values]
            yield f"{few:.0%} to {many:.0%}", above(signed[1], signed[0])

    return cases


def _less_compatible_than_the_oracle(runs: Sequence[RecordedRun], protocol: str) -> Iterator[Case]:
    model, oracle = (
        _of_predictions(runs, "mean", stage, protocol) for stage in ("initial", "oracle")
    )
    for ratio in RATIOS:
        yield f"{ratio:.0%}", above(mean_at(oracle, ratio), mean_at(model, ratio))


def _of_predictions(
    runs: Sequence[RecordedRun], number: str, stage: str, protocol: str
) -> dict[float, Cell]:
    """A number of the predictions' compatibility by ratio."""
    found = figure8.by_ratio(figure8.figure_runs(runs, protocol=protocol))
    return {ratio: figure8.over_runs(ones, number, stage) for ratio, ones in found.items()}


OF_FIGURES = (
    Finding("EMEA lifts every model, on every split", "Fig. 4", _models_lifted),
    Finding("EMEA beats the model and PARIS", "Fig. 4", _better_than_both_parts("test")),
    Finding(
        "EMEA beats the model and PARIS, among all targets",
        "Fig. 4",
        _better_than_both_parts("all"),
    ),
    Finding("better models, better results", "Fig. 4", _better_models_better_results),
    Finding("both parts rise over the iterations", "Fig. 5", _both_parts_rise),
    Finding("joint better early, worse late", "Fig. 5", _joint_early_and_late),
    Finding("the PARIS rule is stronger than AvoidConf", "Fig. 6", _paris_above_avoid_conflict),
    Finding("AvoidConf lifts supervised RREA", "Fig. 6", _avoid_conflict_lifts("sup", RATIOS)),
    Finding(
        "AvoidConf lifts semi up to 10%",
        "Fig. 6",
        _avoid_conflict_lifts("semi", (0.01, 0.05, 0.1)),
    ),
    Finding(
        "AvoidConf: slight gain or none for semi above 10%",
        "Fig. 6",
        _avoid_conflict_no_gain_for_semi,
    ),
    Finding("stable in K above 10", "Fig. 7", _is_stable(OF_K, (20, 50), True)),
    Finding("not stable in K below 10", "Fig. 7", _is_stable(OF_K, (5, 10), False)),
    Finding("fewer labels, more sensitive to K", "Fig. 7", _fewer_labels_more_sensitive),
    Finding("K = 50 more effective than 10, if slightly", "Fig. 7", _fifty_better_than_ten),
    Finding("stable in N from 5 on", "Appendix", _is_stable(OF_N, OF_N.values, True)),
    Finding(
        "RREA's predictions are less compatible than the oracle's",
        "Fig. 8",
        _less_compatible_than_the_oracle,
    ),
    Finding("more labels, more compatible", "Fig. 8", _grows_with_labels("mean", 1)),
    Finding("more labels, fewer conflicts", "Fig. 8", _grows_with_labels("conflicts", -1)),
)
