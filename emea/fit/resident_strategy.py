"""Lightning's use of one GPU, without the work that it does before and after each fit."""

import torch
from pytorch_lightning import Trainer
from pytorch_lightning.accelerators import CUDAAccelerator
from pytorch_lightning.strategies import SingleDeviceStrategy


class ResidentStrategy(SingleDeviceStrategy):
    """Leaves the module on its device after a fit, because another fit follows.

    Lightning would copy weights, graph structure and optimiser state to the main memory, and the
    next fit would copy them back.
    """

    def teardown(self) -> None:
        """Release the state of the optimiser, which is used in one fit only."""
        for optimizer in self.optimizers:
            optimizer.state.clear()
        self.precision_plugin.teardown()
        assert self.accelerator is not None
        self.accelerator.teardown()
        self.checkpoint_io.teardown()


class ResidentAccelerator(CUDAAccelerator):
    """Keeps the device memory that torch has cached, because the next fit or search uses it.

    Lightning would return it to the driver, which waits for the device. torch itself returns cached
    memory when an allocation fails.
    """

    def setup(self, trainer: Trainer) -> None:
        """Set the variables of the process, as Lightning does."""
        self.set_nvidia_flags(trainer.local_rank)

    def teardown(self) -> None:
        """Keep the memory."""


def placement(accelerator: str) -> dict[str, object]:
    """Return the arguments of ``pl.Trainer`` that choose the device.

    Args:
        accelerator: ``cpu`` or ``gpu``.
    """
    if accelerator != "gpu":
        return {"accelerator": accelerator}
    strategy = ResidentStrategy(torch.device("cuda", 0))
    return {"accelerator": ResidentAccelerator(), "strategy": strategy}
