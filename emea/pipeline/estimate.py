"""How long a run will take, told before it starts."""

import time

import torch

from emea.encoders.alignment_module import AlignmentModule
from emea.encoders.step_block import LabelDataModule


def seconds_per_step(module: AlignmentModule, data: LabelDataModule, num_probes: int = 2) -> float:
    """Time of a forward and backward pass on the CPU; weights and generators stay as they were."""
    state = torch.get_rng_state()
    # a step without an optimiser writes what it derives from the links
    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    times = []
    module.objective.before_step(module.encoder, data.links, 0)
    for _ in range(num_probes):
        start = time.perf_counter()
        loss = module.objective(module.encoder, data.links)
        if loss.requires_grad:
            loss.backward()
        times.append(time.perf_counter() - start)
    module.zero_grad(set_to_none=True)
    for buffer, before in buffers:
        buffer.copy_(before)
    torch.set_rng_state(state)
    return min(times)


def duration(seconds: float) -> str:
    """A duration as a person says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
