"""How claims are checked: quantities of recorded runs, and comparisons between them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Protocol

from experiments.report.methods import Method
from experiments.report.run_table import Runs, cell_of, on_splits, values_at
from experiments.report.significance import p_of_splits

HIT = "{stage}.hit@1"
TIE = 0.003
"""Smaller differences of Hit@1 or compatibility are ties, like repeated first trainings."""

MR_TIE = 0.01
"""The same for mean ranks, relative to the smaller one."""

Result = tuple[str, bool | None]
"""The name of a case, and whether the claim holds there; ``None`` if runs are missing."""


class Quantity(Protocol):
    """A number that recorded runs give under a protocol."""

    def value(self, runs: Runs, protocol: str) -> float | None:
        """Return the number; ``None`` if there is no run."""


class Check(Protocol):
    """A condition on recorded runs."""

    def holds(self, runs: Runs, protocol: str) -> bool | None:
        """Return whether the condition holds; ``None`` if runs are missing."""


@dataclass(frozen=True)
class Mean:
    """The mean over splits of a quantity of a method.

    Args:
        method: The method. If it was run under one protocol only, that protocol is used.
        data: The pair of graphs.
        ratio: The share of labelled links.
        path: The quantity, see :func:`experiments.report.run_table.run_table`.
        shared: Only use splits on which all of these methods were run (those with any run).
    """

    method: Method
    data: str
    ratio: float
    path: str = HIT
    shared: tuple[Method, ...] = ()

    def value(self, runs: Runs, protocol: str) -> float | None:
        """Return the mean."""
        place = (self.data, self.ratio)
        found = runs.of(self.method, self.method.usable(protocol), *place)
        if self.shared and found:
            others = [
                (method, method.usable(protocol), *place) for method in self.shared
            ]
            found = on_splits(found, runs.shared_splits(others))
        cell = cell_of(found, self.path)
        return cell.mean if cell else None


@dataclass(frozen=True)
class Minus:
    """The difference of two quantities."""

    first: Quantity
    second: Quantity

    def value(self, runs: Runs, protocol: str) -> float | None:
        """Return the difference."""
        first, second = (
            self.first.value(runs, protocol),
            self.second.value(runs, protocol),
        )
        return None if first is None or second is None else first - second


@dataclass(frozen=True)
class Spread:
    """The largest minus the smallest of several quantities."""

    of: tuple[Quantity, ...]

    def value(self, runs: Runs, protocol: str) -> float | None:
        """Return the difference, if every quantity is known."""
        values = [one.value(runs, protocol) for one in self.of]
        known = [value for value in values if value is not None]
        return max(known) - min(known) if len(known) == len(values) else None


@dataclass(frozen=True)
class Above:
    """One quantity exceeds another by more than a bound.

    Args:
        first: The quantity that should be larger.
        second: The other quantity.
        by: The bound.
        relative: Whether the bound is a share of the second quantity.
        expected: ``False`` if the claim is that this does not hold.
    """

    first: Quantity
    second: Quantity
    by: float = TIE
    relative: bool = False
    expected: bool = True

    def holds(self, runs: Runs, protocol: str) -> bool | None:
        """Compare the two quantities."""
        second = self.second.value(runs, protocol)
        difference = Minus(self.first, self.second).value(runs, protocol)
        if difference is None or second is None:
            return None
        bound = self.by * second if self.relative else self.by
        return (difference > bound) == self.expected


@dataclass(frozen=True)
class Below:
    """A quantity is smaller than a bound, or is not."""

    quantity: Quantity
    bound: float
    expected: bool = True

    def holds(self, runs: Runs, protocol: str) -> bool | None:
        """Compare the quantity with the bound."""
        value = self.quantity.value(runs, protocol)
        return None if value is None else (value < self.bound) == self.expected


@dataclass(frozen=True)
class OnEverySplit:
    """The final Hit@1 of each run exceeds the initial one."""

    method: Method
    data: str
    ratio: float

    def holds(self, runs: Runs, protocol: str) -> bool | None:
        """Compare both rankings of each run."""
        found = runs.of(
            self.method, self.method.usable(protocol), self.data, self.ratio
        )
        before, after = (
            values_at(found, f"{stage}.hit@1") for stage in ("initial", "final")
        )
        pairs = zip(before, after, strict=True)
        return every(
            [None if a is None or b is None else b - a > TIE for a, b in pairs]
        )


@dataclass(frozen=True)
class Differs:
    """Two methods differ significantly on every split that both were run on."""

    first: Method
    second: Method
    data: str
    ratio: float
    bound: float

    def holds(self, runs: Runs, protocol: str) -> bool | None:
        """Test Hit@1 on each split."""
        first, second = (
            runs.of(method, method.usable(protocol), self.data, self.ratio)
            for method in (self.first, self.second)
        )
        found = p_of_splits(first, second, "hit@1")
        below = [None if p is None else p < self.bound for p in found]
        return False if False in below else every(below)


@dataclass(frozen=True)
class KeepsOrder:
    """Quantities have the same order as others. Ties among the others are not compared."""

    before: tuple[Quantity, ...]
    after: tuple[Quantity, ...]

    def holds(self, runs: Runs, protocol: str) -> bool | None:
        """Compare all pairs that are clearly ordered before."""
        both = list(zip(self.before, self.after, strict=True))
        return every(
            [
                Above(b[1], a[1]).holds(runs, protocol)
                for a, b in permutations(both, 2)
                if Above(b[0], a[0]).holds(runs, protocol)
            ]
        )


@dataclass(frozen=True)
class Case:
    """A place where a claim is checked. It holds there if every check does.

    Args:
        name: The place, for instance ``zh 5%``.
        checks: The conditions.
        gap: A difference to report with the name.
    """

    name: str
    checks: tuple[Check, ...]
    gap: Quantity | None = None

    def result(self, runs: Runs, protocol: str) -> Result:
        """Check the claim."""
        gap = self.gap.value(runs, protocol) if self.gap else None
        name = self.name if gap is None else f"{self.name} ({gap:+.3f})"
        return name, every([check.holds(runs, protocol) for check in self.checks])


@dataclass(frozen=True)
class Claim:
    """A claim of the paper's text.

    Args:
        text: The claim.
        place: Where the paper makes it.
        cases: Where it is checked.
        anywhere: Whether it is enough that it holds in one case.
    """

    text: str
    place: str
    cases: tuple[Case, ...]
    anywhere: bool = False

    @property
    def study(self) -> str:
        """The study whose runs are preferred: that of the table or figure, or Table 1."""
        kind, _, number = self.place.partition(" ")
        by_kind = {
            "Table": f"table{number}",
            "Fig.": f"figure{number}",
            "Appendix": "figure7",
        }
        return by_kind.get(kind, "table1")

    def results(self, runs: Runs, protocol: str) -> Iterator[Result]:
        """Check the claim in each case."""
        found = [case.result(runs, protocol) for case in self.cases]
        if not self.anywhere:
            yield from found
            return
        holds = [result for _, result in found]
        yield "some cell", True if any(holds) else None if None in holds else False


def every(holds: Sequence[bool | None]) -> bool | None:
    """Return whether all hold; ``None`` if there are none, or if one is unknown."""
    known = [one for one in holds if one is not None]
    return all(known) if known and len(known) == len(holds) else None
