"""Messages between entities from kernels on a GPU, and the places of each entity's pairs."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch

from emea.kernels import choice
from emea.matching.matching_marginals import matching_messages
from emea.matching.pair_table import PairTable

from ..matching.random_tables import pairs_of, random_table

INTERPRETED = """
import numpy as np
import torch
from emea.kernels.message_passes import torch_message_passes
from emea.kernels.passes import MAX_LOGIT, Passes
from emea.kernels.triton_messages import message_passes
from tests.matching.random_tables import random_table
rng = np.random.default_rng(0)
for shape in ((6, 5, 4), (40, 9, 8), (30, 60, 3)):
    table = random_table(rng, *shape, dtype=torch.float32)
    table.filled[0] = False
    slots = table.slots
    num_pairs = int(table.filled.sum())
    logits = torch.from_numpy(rng.normal(scale=8, size=table.targets.shape)).float()
    logits[~table.filled] = -MAX_LOGIT
    zeros = torch.zeros_like(logits), torch.zeros_like(logits)
    begun = torch_message_passes(slots, logits / 2, zeros, Passes(1.0, 2, 0.0))
    begun = tuple(part.masked_fill(~table.filled, 0) for part in begun)
    before = [part.clone() for part in begun]
    for passes, start in (
        (Passes(1.0, 6, 0.01 * num_pairs), zeros),
        (Passes(0.4, 6, 0.0), begun),
        (Passes(0.7, 12, 0.3 * num_pairs), begun),
    ):
        expected = torch_message_passes(slots, logits, start, passes)
        found = message_passes(slots, logits, start, passes)
        for values, wanted in zip(found, expected, strict=True):
            values, wanted = values[table.filled], wanted[table.filled]
            torch.testing.assert_close(values, wanted, rtol=1e-5, atol=1e-5)
    assert all(map(torch.equal, before, begun))
"""


@pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) >= "2.4.0",
    reason="the interpreter of Triton 3.6 cannot loop over loaded bounds",
)
def test_the_kernel_in_an_interpreter(interpreted: Callable[..., None]) -> None:
    interpreted(INTERPRETED)


@pytest.mark.gpu
@pytest.mark.parametrize("competition", [0.4, 1.0])
@pytest.mark.parametrize("passes", [1, 6, 40])
def test_on_a_gpu(cuda: torch.device, competition: float, passes: int) -> None:
    rng = np.random.default_rng(0)
    table = random_table(rng, 3000, 500, 30, dtype=torch.float32)
    table.filled[:10] = False
    table.targets[:, 0] = 0  # a hub with thousands of pairs
    logits = torch.from_numpy(rng.normal(scale=8, size=table.targets.shape)).float()
    on_gpu = PairTable(
        table.targets.to(cuda),
        table.scores.to(cuda),
        table.filled.to(cuda),
        table.num_target,
    )
    expected = matching_messages(
        table,
        logits.double(),
        competition=competition,
        max_passes=passes,
        tolerance=0.05,
    )
    found = [
        matching_messages(
            on_gpu,
            logits.to(cuda),
            competition=competition,
            max_passes=passes,
            tolerance=0.05,
        )
        for _ in range(2)
    ]
    for name in ("from_source", "from_target"):
        values = getattr(found[0], name)
        torch.testing.assert_close(
            values.cpu().double(), getattr(expected, name), rtol=1e-3, atol=1e-3
        )
        if choice.uses_triton(values):  # sums of torch's operations vary
            assert torch.equal(values, getattr(found[1], name))


@pytest.mark.parametrize("seed", range(3))
def test_places_are_those_of_each_entity(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_table(rng, 9, 6, 4)
    table.filled[seed] = False
    pairs = {place: pair for pair, place in pairs_of(table).items()}
    width = table.targets.shape[1]
    for side, groups in enumerate((table.slots.by_source, table.slots.by_target)):
        assert len(groups.starts) == 1 + (table.num_source, table.num_target)[side]
        for entity, (start, end) in enumerate(pairwise(groups.starts.tolist())):
            places = groups.places[start:end].tolist()
            assert places == [
                row * width + slot
                for (row, slot), pair in sorted(pairs.items())
                if pair[side] == entity
            ]
