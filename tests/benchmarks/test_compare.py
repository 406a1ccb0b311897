"""The direct forms compute the same as ours, so the ratios compare like with like."""

import pytest
import torch

from benchmarks import compare, compare_search
from benchmarks.direct_rrea import DirectRREA
from emea.data.sources.synthetic import synthetic_pair
from emea.encoders.joint_graph import join_graphs
from emea.encoders.rrea import RREA

from ..usual import usual

CPU = torch.device("cpu")


def test_the_direct_layer_is_the_same_model() -> None:
    graph = join_graphs(synthetic_pair(num_entities=120))
    torch.manual_seed(0)
    model = usual(RREA, graph, dim=8).eval()
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


def test_former_products_are_the_same_step() -> None:
    pair, losses = synthetic_pair(num_entities=100), []
    for former in (False, True):
        torch.manual_seed(1)
        step, _ = compare._steps(pair, CPU)
        torch.manual_seed(1)
        if former:
            compare._with_former_products(step)
        else:
            step()
        losses.append(step())
    torch.testing.assert_close(losses[0], losses[1])


def test_searches_have_a_recall() -> None:
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.randn(size, 16, generator=generator) for size in (150, 400))
    numbers = compare_search.approximate_searches(source, target)
    exact = numbers["exact search of 150 entities, s"]
    for name in ("k-means search", "one pass search"):
        assert 0 < numbers[f"{name}: recall at 10"] <= 1
        ratio = exact / numbers[f"{name}, s"]
        assert numbers[f"{name}: ratio to exact"] == pytest.approx(ratio)
    assert numbers["one pass search: recall at 10"] > 0.99
