"""Trains the configured encoder for a baseline that asks for an embedding."""

import time

import torch
from omegaconf import DictConfig
from torch import Tensor

from emea.data.graph_pair import GraphPair
from emea.em.em_callback import IterationReport
from emea.em.protocol import Visible
from emea.matching.similarity import Similarity
from emea.pipeline.fitting import fit
from emea.pipeline.parts import Parts, build_parts
from emea.pipeline.progress import StepProgress
from emea.pipeline.reasoning_observer import ReasoningObserver
from emea.pipeline.training_loop import announce


class Embedder:
    """Called with links, trains an encoder on them from new weights.

    Nothing is built before it is asked: reasoning alone needs no encoder.

    Args:
        config: of the run.
        pair: graphs without links.
        visible: what the run may see.
        observer: told how long training took.
        device: where to train.

    Attributes:
        parts: the encoder and its labels, once there is one.
    """

    def __init__(
        self,
        config: DictConfig,
        pair: GraphPair,
        visible: Visible,
        observer: ReasoningObserver,
        device: torch.device,
    ) -> None:
        self.config = config
        self.pair = pair
        self.visible = visible
        self.observer = observer
        self.device = device
        self.parts: Parts | None = None

    def __call__(self, links: Tensor) -> Similarity:
        """The similarity of the entities after training on the links."""
        start = time.perf_counter()
        parts = self._renewed()
        parts.data.relabel(links.cpu().numpy())
        num_epochs = self.config.model.initial_epochs
        num_steps = parts.module.num_steps(num_epochs, len(links))
        announce(parts, num_steps, self.device)
        with StepProgress(num_steps) as progress:
            progress.say("training the embedding")
            stopping = [parts.stopping] if parts.stopping else []
            accelerator = "gpu" if self.device.type == "cuda" else "cpu"
            fit(parts.module, parts.data, num_epochs, accelerator, [*stopping, progress])
        similarity = parts.em.decoder(*parts.module.to(self.device).embeddings())
        self.observer.embedding_seconds += time.perf_counter() - start
        return similarity

    @property
    def losses(self) -> list[tuple[int, float]]:
        """Steps and losses of the training so far."""
        return [] if self.parts is None else self.parts.module.losses

    def _renewed(self) -> Parts:
        """The parts with new weights."""
        if self.parts is None:
            self.parts = build_parts(self.config, self.pair, self.visible, _nobody, self.device)
        else:
            self.parts.restart()
        return self.parts


def _nobody(report: IterationReport) -> None:
    """Observes nothing: the EM callback that parts come with is not used."""
