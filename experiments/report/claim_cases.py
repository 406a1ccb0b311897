"""The cases that check the claims of the paper: which numbers are compared, and how."""

from collections.abc import Sequence
from itertools import pairwise, product

from experiments.report.checks import (
    HIT,
    MR_TIE,
    TIE,
    Above,
    Below,
    Case,
    Differs,
    KeepsOrder,
    Mean,
    Minus,
    Spread,
)
from experiments.report.methods import (
    EMEA,
    EMEA_COMPATIBLE,
    EMEA_SEMI,
    PARIS,
    RREA,
    Method,
    on_data,
)
from experiments.report.studies.common import ZH, percent
from experiments.report.studies.figures import (
    MODELS,
    SENSITIVITY,
    SENSITIVITY_RATIOS,
    VARIED,
    WITH_RULE,
)
from experiments.report.study_spec import RATIOS, Places

STABLE = 0.02
"""Hit@1 that differs by less is stable or about equal (≈); what is worse by more is poor."""

SLIGHT = 0.01
"""A gain in Hit@1 of at most this is called slight."""


def _short(data: str) -> str:
    return data.removeprefix("dbp15k_").removeprefix("dwy100k_")


def _pool(pool: str) -> str:
    return HIT if pool == "test" else "{stage}.all_targets.hit@1"


def better(
    first: Method, second: Method, places: Places, pool: str = "test", by: float = TIE
) -> tuple[Case, ...]:
    """Return the cases that check whether one method beats another on all data and ratios."""
    cases = []
    for data, ratio in places:
        both = (on_data(first, data), on_data(second, data))
        a, b = (Mean(method, data, ratio, _pool(pool), both) for method in both)
        name = f"{_short(data)} {percent(ratio)}"
        cases.append(Case(name, (Above(a, b, by),), Minus(a, b)))
    return tuple(cases)


def differs(
    first: Method, second: Method, bound: float, places: Places
) -> tuple[Case, ...]:
    """Return the cases that check whether two methods differ significantly on every split."""
    return tuple(
        Case(
            f"{_short(data)} {percent(ratio)}",
            (Differs(on_data(first, data), on_data(second, data), data, ratio, bound),),
        )
        for data, ratio in places
    )


def lift(data: str, ratio: float) -> Minus:
    """Return how much EMEA improves Hit@1 of RREA."""
    both = (on_data(EMEA, data), on_data(RREA, data))
    return Minus(*(Mean(method, data, ratio, shared=both) for method in both))


def before_and_after(
    method: Method, ratio: float, pool: str = "test", shared: tuple[Method, ...] = ()
) -> tuple[Mean, Mean]:
    """Return Hit@1 of a method's runs on zh before and after EM."""
    first, last = (_pool(pool).format(stage=stage) for stage in ("initial", "final"))
    return Mean(method, ZH, ratio, first, shared), Mean(method, ZH, ratio, last, shared)


def keep_order(models: tuple[Method, ...], ratios: Sequence[float]) -> tuple[Case, ...]:
    """Return the cases that check whether EM keeps the order of models, on common splits."""
    cases = []
    for ratio in ratios:
        both = [before_and_after(model, ratio, shared=models) for model in models]
        cases.append(Case(percent(ratio), (KeepsOrder(*zip(*both, strict=True)),)))
    return tuple(cases)


def gains(
    method: Method, ratios: Sequence[float], by: float = TIE, *, expected: bool = True
) -> tuple[Case, ...]:
    """Return the cases that check whether EM improves Hit@1, or does not."""
    cases = []
    for ratio in ratios:
        before, after = before_and_after(method, ratio)
        cases.append(
            Case(percent(ratio), (Above(after, before, by, expected=expected),))
        )
    return tuple(cases)


def beats_both_parts(pool: str) -> tuple[Case, ...]:
    """Return the cases that check whether EMEA around a model beats the model and PARIS."""
    cases = []
    for method, ratio in product(MODELS.values(), RATIOS):
        both = (method, PARIS)
        before, after = before_and_after(method, ratio, pool, both)
        paris = Mean(PARIS, ZH, ratio, _pool(pool), both)
        checks = (Above(after, before), Above(after, paris))
        cases.append(Case(f"{method.label} {percent(ratio)}", checks))
    return tuple(cases)


def at_iteration(part: str, iteration: str, ratio: float) -> Mean:
    """Return Hit@1 of a part of EMEA on zh in an iteration."""
    return Mean(EMEA, ZH, ratio, f"history.{iteration}.{part}.hit@1")


def varied(symbol: str, value: int, ratio: float, path: str = HIT) -> Mean:
    """Return a metric on zh with a value of K or N, on splits that all values share."""
    shared = tuple(
        method for (other, _), method in SENSITIVITY.items() if other == symbol
    )
    return Mean(SENSITIVITY[symbol, value], ZH, ratio, path, shared)


def sensitivity(symbol: str, values: Sequence[int], ratio: float) -> Spread:
    """Return how far Hit@1 on zh varies over values of K or N."""
    return Spread(tuple(varied(symbol, value, ratio) for value in values))


def stable(
    symbol: str, values: Sequence[int], *, expected: bool = True
) -> tuple[Case, ...]:
    """Return the cases that check whether Hit@1 hardly depends on K or N, or does."""
    cases = []
    for ratio in SENSITIVITY_RATIOS:
        spread = sensitivity(symbol, values, ratio)
        cases.append(Case(percent(ratio), (Below(spread, STABLE, expected),), spread))
    return tuple(cases)


def predictions(number: str, stage: str, ratio: float) -> Mean:
    """Return a number about the compatibility of predictions on zh."""
    return Mean(EMEA_COMPATIBLE, ZH, ratio, f"compatibility.{stage}.{number}")


def changes_with_labels(number: str, *, grows: bool) -> tuple[Case, ...]:
    """Return cases that check whether a number grows, or falls, with the share of labels."""
    cases = []
    for few, many in pairwise(RATIOS):
        less, more = (predictions(number, "initial", ratio) for ratio in (few, many))
        check = Above(more, less) if grows else Above(less, more)
        cases.append(Case(f"{percent(few)} to {percent(many)}", (check,)))
    return tuple(cases)


def with_rule(training: str, rule: str, ratio: float) -> Mean:
    """Return Hit@1 on zh with a rule, on splits that PARIS and AvoidConf share."""
    shared = (WITH_RULE[training, "paris"], WITH_RULE[training, "avoid_conflict"])
    return Mean(WITH_RULE[training, rule], ZH, ratio, shared=shared)


def five_like_twenty(data: str) -> Case:
    """Return the case that EMEA with 5% of the labels is about as good as RREA with 20%."""
    both = Mean(on_data(EMEA, data), data, 0.05), Mean(on_data(RREA, data), data, 0.2)
    return Case(_short(data), (Below(Spread(both), STABLE),), Minus(*both))


def larger_lift(data: str) -> Case:
    """Return the case that the gain from EM is larger with fewer labels."""
    pairs = [(lift(data, few), lift(data, many)) for few, many in pairwise(RATIOS)]
    return Case(_short(data), tuple(Above(*pair) for pair in pairs))


def semi_better(data: str, ratio: float) -> Case:
    """Return the case that semi-supervised EMEA beats supervised EMEA, except at 1%."""
    both = (EMEA_SEMI, EMEA)
    semi, sup = (Mean(method, data, ratio, shared=both) for method in both)
    name = f"{_short(data)} {percent(ratio)}"
    return Case(name, (Above(semi, sup, expected=ratio > 0.01),))


def more_sensitive(few: float, many: float, symbol: str = "K") -> Case:
    """Return the case that Hit@1 depends more on K with fewer labels."""
    a, b = (sensitivity(symbol, VARIED[symbol][2], ratio) for ratio in (few, many))
    return Case(f"{percent(few)} against {percent(many)}", (Above(a, b),), Minus(a, b))


def fifty_better(ratio: float, metric: str, symbol: str = "K") -> Case:
    """Return the case that K = 50 is better than K = 10."""
    fifty, ten = (varied(symbol, k, ratio, f"{{stage}}.{metric}") for k in (50, 10))
    is_rank = metric == "mr"  # lower is better
    check = Above(ten, fifty, MR_TIE, relative=True) if is_rank else Above(fifty, ten)
    return Case(f"{percent(ratio)} {metric}", (check,))
