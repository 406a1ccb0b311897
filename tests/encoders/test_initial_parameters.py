"""Initial parameters: their shapes, and the bounds of the uniform distributions they are from."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from emea.encoders.alinet import AliNet
from emea.encoders.dual_amn import DualAMN
from emea.encoders.iptranse import IPTransE
from emea.encoders.joint_graph import join_graphs
from emea.encoders.rrea import RREA


def glorot(*sizes: int) -> float:
    return float((6 / sum(sizes)) ** 0.5)


EMBEDDINGS = {"entities": ((19, 50), 0.05), "relations": ((12, 50), 0.05)}
KERNELS = ("neighbour_attention", "relation_attention")
RREA_PARTS = EMBEDDINGS | dict.fromkeys(KERNELS, ((2, 50), glorot(150, 1)))
DUAL_AMN_PARTS = EMBEDDINGS | {"relation_attention": ((2, 2, 50), glorot(50, 1))}
for channel in "01":
    DUAL_AMN_PARTS |= {
        f"matching.{channel}.proxies": ((64, 150), glorot(64, 150)),
        f"matching.{channel}.gate": ((150, 150), glorot(150, 150)),
        f"matching.{channel}.bias": ((150,), 0.0),
    }
ROWS = {"entities": ((19, 100), 2 * 100**-0.5), "relations": ((6, 100), 2 * 100**-0.5)}


@pytest.mark.parametrize(
    ("encoder", "settings", "width", "parts"),
    [
        (RREA, {"dim": 50, "depth": 2}, 300, RREA_PARTS),
        (DualAMN, {"dim": 50, "depth": 2}, 300, DUAL_AMN_PARTS),
        (AliNet, {"dims": [40, 30, 20]}, 90, {"features": ((19, 40), glorot(19, 40))}),
        (IPTransE, {"dim": 100}, 100, ROWS),
    ],
)
def test_initial_parameters(
    encoder: Callable[..., nn.Module],
    settings: dict[str, Any],
    width: int,
    parts: dict[str, tuple[tuple[int, ...], float]],
    make_pair: Any,
) -> None:
    torch.manual_seed(0)
    made = encoder(join_graphs(make_pair()), **settings)
    found = dict(made.named_parameters())
    for name, (shape, bound) in parts.items():
        assert found[name].shape == shape, name
        assert 0.75 * bound <= found[name].abs().max() <= bound, name
    assert encoder is AliNet or found.keys() == parts.keys()
    assert made().shape == (19, width)
