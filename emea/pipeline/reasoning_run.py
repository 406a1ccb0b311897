"""One job of a baseline: reason from the training links, evaluate, write the files."""

from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig

from emea.baselines.reasoner import Reasoner
from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.em.protocol import Visible
from emea.evaluation.degree_buckets import accuracy_by_degree
from emea.matching.matching import Matching
from emea.pipeline import run_files
from emea.pipeline.answering import build_answering
from emea.pipeline.building import maker
from emea.pipeline.checkpoint import save_matching
from emea.pipeline.compatibility import compatibility_section
from emea.pipeline.decision import Decision, decide
from emea.pipeline.embedder import Embedder
from emea.pipeline.export_settings import ExportSettings
from emea.pipeline.observer import Log
from emea.pipeline.reasoning_observer import ReasoningObserver
from emea.pipeline.run_summary import run_settings


class ReasoningRun:
    """A baseline on one split.

    Args:
        config: of the run.
        graphs: the pair without its links.
        visible: what the run may see.
        split: for the observer, and its validation links for the threshold.
        log: where metrics with a step go.
        device: where to compute.
    """

    def __init__(
        self,
        config: DictConfig,
        graphs: GraphPair,
        visible: Visible,
        split: Split,
        log: Log,
        device: torch.device,
    ) -> None:
        self.config = config
        self.split = split
        self.device = device
        self.seeds = torch.from_numpy(visible.train.copy()).to(device)
        self.observer = ReasoningObserver(split, log)
        self.reasoner: Reasoner = maker(config.method.reasoner)(pair=graphs, device=device)
        self.embedder = Embedder(config, graphs, visible, self.observer, device)
        self.answering = build_answering(config)
        self.matching: Matching | None = None

    def align(self) -> None:
        """Reason from the seeds."""
        self.matching = self.reasoner.align(self.seeds, self.embedder, self.observer)

    def decision(self, settings: ExportSettings) -> Decision:
        """What is answered."""
        assert self.matching is not None
        beliefs, validation = self.matching.beliefs(), self.split.supervision.validation
        return decide(self.answering, beliefs, self.seeds, settings, validation)

    def metrics(self, pair: GraphPair) -> dict[str, Any]:
        """All numbers of the run.

        The result is the matching, also where an embedding took part: that is what the paper
        reports of PRASE. The ranking of the embedding stands beside it.
        """
        observer, ranks = self.observer, self.observer.final_ranks
        assert self.matching is not None and ranks is not None
        first, last = observer.history[0], observer.history[-1]
        return {
            "initial": first["joint"],
            "final": last["joint"],
            # one counterpart for each entity of either side: the same pairs from either end
            "final_reverse": last["joint"],
            "embedding": last["neural"],
            "mapping": {"all": last["mapping"], "mutual": last["mapping"]},
            # no model makes predictions before the reasoning does: there is no initial stage
            "compatibility": compatibility_section(
                pair, self.split, {"final": self.matching.targets.cpu().numpy()}, self.device
            ),
            "by_degree": accuracy_by_degree(
                ranks.in_pool, pair.source.degrees()[self.split.test[:, 0]]
            ),
            "num_iterations": len(observer.history),
            "history": observer.history,
            **run_settings(self.config, pair, self.split),
        }

    def write_files(self, folder: Path) -> None:
        """Ranks, beliefs and state."""
        observer, parts = self.observer, self.embedder.parts
        assert self.matching is not None
        assert observer.initial_ranks and observer.final_ranks
        run_files.write_ranks(
            folder,
            self.split.test,
            observer.initial_ranks,
            observer.final_ranks,
            observer.embedding_ranks,
        )
        run_files.write_beliefs(folder, None, self.matching.beliefs(), self.seeds)
        save_matching(
            folder / run_files.CHECKPOINT_FILE, self.matching, parts.module if parts else None
        )
