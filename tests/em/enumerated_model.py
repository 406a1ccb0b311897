"""A compatibility model small enough to write down every assignment."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from torch import Tensor

from emea.matching.beliefs import Beliefs
from emea.rules.rule import Rule, RuleView

Array = np.ndarray
Assignment = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class EnumeratedModel:
    """Factor subsets with a table of indicator values for each.

    Args:
        num_targets: values each variable can take.
        members: entities of each factor subset, in the order of its table's axes.
        tables: ``[num_targets, ..., num_rules]`` indicator values of each subset.
        weights: phi of each rule.
        offset: phi_0.
    """

    num_targets: int
    members: list[tuple[int, ...]]
    tables: list[Array]
    weights: Array
    offset: float = 0.0

    @property
    def num_source(self) -> int:
        return 1 + max(max(members) for members in self.members)

    def assignments(self) -> Iterator[Assignment]:
        return product(range(self.num_targets), repeat=self.num_source)

    def log_joint(self) -> Array:
        """``log p(y)`` of every assignment, one axis per entity (Eq. 4-6)."""
        total = np.zeros((self.num_targets,) * self.num_source)
        for y in self.assignments():
            for members, table in zip(self.members, self.tables, strict=True):
                total[y] += (
                    self.weights @ table[tuple(y[e] for e in members)] + self.offset
                )
        return total - np.log(np.exp(total).sum())

    def log_conditional(self, e: int, y: Assignment) -> Array:
        """``log p(y_e | y_-e)`` read off the whole joint."""
        row = self.log_joint()[
            tuple(slice(None) if i == e else t for i, t in enumerate(y))
        ]
        return row - np.log(np.exp(row).sum())


def random_model(seed: int, num_rules: int = 2) -> EnumeratedModel:
    """Four entities, three targets; a subset per entity: itself and its neighbours."""
    rng = np.random.default_rng(seed)
    members = [(0, 1), (1, 0, 2), (2, 1, 3), (3, 2)]
    tables = [rng.normal(size=(3,) * len(m) + (num_rules,)) for m in members]
    return EnumeratedModel(
        3, members, tables, rng.uniform(0.3, 2, num_rules), rng.normal()
    )


class TableRule(Rule):
    """The model's indicator functions as a rule: expected values of all subsets with e."""

    def __init__(self, model: EnumeratedModel) -> None:
        self.model = model
        self.names = [f"rule{i}" for i in range(len(model.weights))]

    def prepare(self, view: RuleView) -> None:
        """Nothing to estimate."""

    def __call__(self, beliefs: Beliefs) -> Tensor:
        """``E_q [sum of g(y_F) over the subsets F with e | y_e = e']``."""
        q = dense(beliefs)
        values = np.zeros((*q.shape, len(self.names)))
        for members, table in zip(self.model.members, self.model.tables, strict=True):
            for e in members:
                rest = np.moveaxis(table, members.index(e), 0)
                for other in (m for m in members if m != e):
                    rest = np.tensordot(q[other], rest, axes=(0, 1))
                values[e] += rest
        index = beliefs.targets.unsqueeze(2).expand(-1, -1, len(self.names))
        return torch.from_numpy(values).gather(1, index)


def dense(beliefs: Beliefs) -> Array:
    """``[num_source, num_targets]`` probabilities, all targets being candidates."""
    return (
        torch.zeros_like(beliefs.probs)
        .scatter_(1, beliefs.targets, beliefs.probs)
        .numpy()
    )


def random_beliefs(model: EnumeratedModel, seed: int, labels: Tensor) -> Beliefs:
    """All targets as candidates in any order, labelled entities certain."""
    rng = np.random.default_rng(seed)
    shape = model.num_source, model.num_targets
    order = np.array([rng.permutation(shape[1]) for _ in range(shape[0])])
    probs = rng.dirichlet(np.ones(shape[1]), shape[0])
    return Beliefs(torch.from_numpy(order), torch.from_numpy(probs)).clamped(labels)


def certain(
    y: Assignment, num_targets: int, dtype: torch.dtype = torch.float64
) -> Beliefs:
    """All targets as candidates, all probability on the assignment."""
    targets = torch.arange(num_targets).repeat(len(y), 1)
    return Beliefs(
        targets, torch.nn.functional.one_hot(torch.tensor(y), num_targets).to(dtype)
    )
