"""Fits on a GPU, which need neither Hydra nor MLflow."""

from typing import Any

import numpy as np
import pytest
import torch

from emea.fit.step_block import LabelDataModule

from .small_fits import fit_members, small_rrea

LINKS = np.array([[0, 0], [1, 1], [2, 2]])


@pytest.mark.gpu
def test_fits_on_a_gpu_leave_the_module_there(
    make_pair: Any, cuda: torch.device
) -> None:
    module = small_rrea(make_pair())
    data = LabelDataModule(LINKS, num_source=9, block_size=3)
    devices = []
    for links in (LINKS, LINKS[:2], LINKS):
        data.relabel([(links, None)])
        fit_members(module, data, (0,), 7, cuda)
        devices.append(next(module.parameters()).device.type)
    assert devices == [cuda.type] * 3
    assert module.num_steps_done == 21
    assert all(rows.isfinite().all() and rows.is_cuda for rows in module.embeddings())
