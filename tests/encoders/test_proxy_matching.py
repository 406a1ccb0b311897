"""Proxy matching against a loop over entities and proxies."""

import pytest
import torch
from torch import Tensor

from emea.encoders.dual_amn import ProxyMatching


def looped(module: ProxyMatching, rows: Tensor) -> Tensor:
    """Each entity's comparison with each proxy spelled out."""
    out = []
    for row in rows:
        scores = []
        for proxy in module.proxies:
            lengths = (row.square().sum() * proxy.square().sum()).sqrt()
            scores.append(row @ proxy / lengths if row.any() else row @ proxy)
        attention = torch.softmax(torch.stack(scores), dim=0)
        common = sum(a * proxy for a, proxy in zip(attention, module.proxies, strict=True))
        apart = row - common
        gate = torch.sigmoid(apart @ module.gate + module.bias)
        out.append(gate * row + (1 - gate) * apart)
    return torch.stack(out)


@pytest.mark.parametrize("seed", range(3))
def test_output_and_gradients_are_those_of_the_equations(seed: int) -> None:
    torch.manual_seed(seed)
    module = ProxyMatching(6, 4).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_()
    rows = torch.randn(9, 6, dtype=torch.float64)
    rows[3] = 0  # an entity without triples
    rows.requires_grad_()
    weights = torch.randn(9, 6, dtype=torch.float64)
    expected, result = looped(module, rows), module(rows)
    torch.testing.assert_close(result, expected, rtol=0, atol=1e-12)
    inputs = dict(module.named_parameters())
    wanted = torch.autograd.grad((expected * weights).sum(), [*inputs.values(), rows])
    found = torch.autograd.grad((result * weights).sum(), [*inputs.values(), rows])
    some = torch.arange(9) != 3  # the cosine has no gradient at 0
    for name, left, right in zip([*inputs, "rows"], found, wanted, strict=True):
        kept = some if name == "rows" else slice(None)
        assert right.abs().max() > 1e-2, name
        torch.testing.assert_close(left[kept], right[kept], rtol=0, atol=1e-11, msg=name)
    assert found[-1].isfinite().all()


def test_initial_parameters() -> None:
    torch.manual_seed(0)
    module = ProxyMatching(60, 20)
    assert module.proxies.shape == (20, 60)
    assert module.gate.shape == (60, 60)
    assert not module.bias.any()
    for parameter, bound in ((module.proxies, (6 / 80) ** 0.5), (module.gate, (6 / 120) ** 0.5)):
        assert 0.95 * bound < parameter.abs().max() <= bound
