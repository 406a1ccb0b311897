"""Concatenation with dropout: order, share, and one mask for both directions."""

import pytest
import torch

from emea.encoders.kernels.dropout import DroppedConcat


def test_a_channels_depths_lie_side_by_side() -> None:
    depths = [torch.arange(12.0).view(2, 3, 2) + 100 * depth for depth in range(2)]
    expected = torch.cat([depths[0][0], depths[1][0], depths[0][1], depths[1][1]], dim=1)
    concat = DroppedConcat(0.3).eval()
    assert torch.equal(concat([depths]), expected)
    alone = [[depth[[channel]] for depth in depths] for channel in range(2)]
    assert torch.equal(concat(alone), expected)


def test_in_training_a_share_is_dropped() -> None:
    torch.manual_seed(0)
    rows = DroppedConcat(0.25)([[torch.ones(2, 500, 20)] * 3])
    assert float((rows == 0).float().mean()) == pytest.approx(0.25, abs=0.01)
    assert float(rows.mean()) == pytest.approx(1, abs=0.02)


@pytest.mark.gpu
@pytest.mark.parametrize("dim", [3, 100, 128])
def test_the_kernel_drops_the_same_in_both_directions(dim: int, cuda: torch.device) -> None:
    torch.manual_seed(0)
    depths = [torch.rand(2, 700, dim, device=cuda).add_(1).requires_grad_() for _ in range(3)]
    concat = DroppedConcat(0.3)
    rows = concat([depths])
    kept = rows != 0
    whole = concat.eval()([depths])
    torch.testing.assert_close(rows, whole * kept / 0.7)
    torch.autograd.backward(rows.sum())
    for depth, values in enumerate(depths):
        assert values.grad is not None
        for channel in range(2):
            first = (channel * 3 + depth) * dim
            mask = kept[:, first : first + dim]
            torch.testing.assert_close(values.grad[channel], mask / 0.7)


@pytest.mark.gpu
def test_the_kernels_mask_is_even_and_new_each_time(cuda: torch.device) -> None:
    torch.manual_seed(0)
    concat = DroppedConcat(0.3)
    ones = [torch.ones(2, 4000, 100, device=cuda)] * 3
    first, second = (concat([ones]) != 0 for _ in range(2))
    for kept in (first, second):
        slack = 5 * (0.21 / 4000) ** 0.5  # five standard deviations of a column's share
        assert float((kept.float().mean(0) - 0.7).abs().max()) < slack
        assert float((kept.float().mean(1) - 0.7).abs().max()) < 5 * (0.21 / 600) ** 0.5
    assert float((first == second).float().mean()) == pytest.approx(0.58, abs=0.005)
    neighbours = (first[:, 1:] == first[:, :-1]).float().mean()
    assert float(neighbours) == pytest.approx(0.58, abs=0.005)
