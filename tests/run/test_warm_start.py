"""The state that a run takes from an earlier run."""

import numpy as np
import torch

from emea.data.arrays import NO_MATCH
from emea.run.warm_start import RowMap, carried_state, joint_rows

SOURCE = RowMap(np.array([1, NO_MATCH, 0]), 2)
"""Three source entities, of which the second is new; there were two."""

TARGET = RowMap(np.array([NO_MATCH, 2]), 3)


def test_rows_of_both_graphs_and_directions() -> None:
    both = joint_rows([SOURCE, TARGET])
    assert both.old_rows.tolist() == [1, NO_MATCH, 0, NO_MATCH, 4] and both.num_old == 5
    twice = joint_rows([SOURCE, TARGET], directions=2)
    assert twice.old_rows.tolist()[5:] == [6, NO_MATCH, 5, NO_MATCH, 9] and twice.num_old == 10


def test_known_rows_are_carried_and_new_ones_stay() -> None:
    maps = [joint_rows([SOURCE, TARGET])]
    old = {
        "entities": torch.arange(10.0).view(5, 2),
        "layer": torch.full((2, 2), 7.0),
        "edges": torch.zeros(4),
        "step": torch.tensor(3),
    }
    new = {
        "entities": -torch.ones(5, 2),
        "layer": torch.zeros(2, 2),
        "edges": torch.ones(6),
        "step": torch.tensor(0),
        "other": torch.zeros(1),
    }
    found = carried_state(old, new, maps)
    assert found["entities"].tolist() == [[2, 3], [-1, -1], [0, 1], [-1, -1], [8, 9]]
    assert torch.equal(found["layer"], old["layer"]) and int(found["step"]) == 3
    assert found.keys() == {"entities", "layer", "step"}
