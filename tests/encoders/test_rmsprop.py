"""RMSprop's single pass against torch's optimiser."""

import pytest
import torch

from emea.encoders.rmsprop import RMSprop

SETTINGS = {"lr": 0.01, "alpha": 0.9, "eps": 1e-7}


def difference(device: str) -> float:
    """How far the parameters are apart after some steps of both."""
    torch.manual_seed(0)
    start = [torch.randn(3000), torch.randn(7, 5), torch.randn(())]
    finals = []
    for kind in (RMSprop, torch.optim.RMSprop):
        parameters = [value.clone().to(device).requires_grad_() for value in start]
        unused = torch.ones(2, device=device, requires_grad=True)
        optimizer = kind([*parameters, unused], **SETTINGS)
        for _ in range(6):
            optimizer.zero_grad()
            loss = torch.stack([(value**3).sum() for value in parameters]).sum()
            torch.autograd.backward(loss)
            optimizer.step()
        assert torch.equal(unused.detach().cpu(), torch.ones(2))
        finals.append(torch.cat([value.detach().flatten() for value in parameters]))
    assert not torch.equal(
        finals[0].cpu(), torch.cat([value.flatten() for value in start])
    )
    return float((finals[0] - finals[1]).abs().max())


def test_on_a_cpu_it_is_torchs_own() -> None:
    assert difference("cpu") == 0


@pytest.mark.gpu
def test_the_kernel_takes_the_same_steps(cuda: torch.device) -> None:
    assert difference("cuda") < 1e-6
