"""Concatenation with dropout: order and share."""

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
