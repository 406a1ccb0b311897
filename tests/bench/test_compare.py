"""The direct forms compute the same as ours, so the ratios compare like with like."""

import pytest
import torch

from emea.bench import compare
from emea.bench.direct_rrea import DirectRREA
from emea.data.sources.synthetic import synthetic_pair
from emea.encoders.joint_graph import join_graphs
from emea.encoders.rrea import RREA

CPU = torch.device("cpu")


def test_the_direct_layer_is_the_same_model() -> None:
    graph = join_graphs(synthetic_pair(num_entities=120))
    torch.manual_seed(0)
    model = RREA(graph, dim=8).eval()
    direct = DirectRREA(graph, model).eval()
    torch.testing.assert_close(model(), direct(), rtol=1e-5, atol=1e-6)


def test_the_loop_is_the_same_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "NUM_LOOPED", 100)
    numbers = compare.joint_ratio(synthetic_pair(num_entities=150), 1, CPU)
    assert numbers["joint ratio"] > 0


def test_a_loop_that_differs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compare, "NUM_LOOPED", 20)
    monkeypatch.setattr(compare, "loop_values", lambda *_: [[2.0] * 10] * 20)
    with pytest.raises(AssertionError, match="other values"):
        compare.joint_ratio(synthetic_pair(num_entities=150), 1, CPU)


def test_growth_fits_an_exponent() -> None:
    numbers = compare.growth([100, 200, 400], 1, CPU)
    assert set(numbers) >= {"exponent of the step", "exponent of the joint module"}
    assert compare._exponent([1, 2, 4], [1.0, 4.0, 16.0]) == pytest.approx(2)
