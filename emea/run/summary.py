"""All numbers of a finished run."""

from typing import Any

import numpy as np
import torch
from omegaconf import DictConfig
from torch import Tensor

from emea.config.files import OPTIONAL
from emea.data.arrays import IntArray
from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.em.em_callback import IterationReport
from emea.evaluation.joint_ranks import fused_ranks
from emea.evaluation.metrics import accuracy_by_degree, mapping_metrics
from emea.evaluation.ranks import Ranks, both_pools, link_ranks
from emea.matching.candidates import Candidates, mutual_best, top_candidates
from emea.record.run_header import method_name
from emea.run.observer import EvaluationObserver, compatibility_section, hard_mapping


def summarise(
    config: DictConfig,
    pair: GraphPair,
    split: Split,
    judged: Split,
    observer: EvaluationObserver,
    device: torch.device,
) -> dict[str, Any]:
    """All numbers of the run, each with the protocol that made it.

    Args:
        config: of the run.
        pair: the two graphs.
        split: all test links, which a ranking is measured on.
        judged: less those that the run took as labels: a label is no right answer.
        observer: of the run.
        device: where to compute.
    """
    report, ranks = observer.last, observer.final_ranks
    assert report is not None and ranks is not None
    return {
        "initial": observer.history[0]["neural"],
        "final": both_pools(ranks),
        "final_reverse": both_pools(_reverse_ranks(report, split.test)),
        "mapping": _mapping(judged, observer),
        "compatibility": _compatibility(pair, split, observer, device),
        "by_degree": accuracy_by_degree(ranks.in_pool, pair.source.degrees()[split.test[:, 0]]),
        "history": observer.history,
        **run_settings(config, pair, split),
    }


def _compatibility(
    pair: GraphPair, split: Split, observer: EvaluationObserver, device: torch.device
) -> dict[str, Any]:
    assert observer.last is not None and observer.initial_mapping is not None
    mappings = {"initial": observer.initial_mapping, "final": hard_mapping(observer.last.answer)}
    return compatibility_section(pair, split, mappings, device)


def _reverse_ranks(report: IterationReport, test: IntArray) -> Ranks:
    """Ranks of the test links' sources for their targets, by what the run stands for."""
    links, similarity = test[:, ::-1].copy(), report.similarity.reversed()
    neural = link_ranks(similarity, links)
    ranking = report.answer_ranking
    if ranking is None:
        return neural
    return fused_ranks(neural, similarity, ranking, links, reverse=True)


def run_settings(config: DictConfig, pair: GraphPair, split: Split) -> dict[str, Any]:
    """What was run, on what: a group that the method does not use is none."""
    used = set(config.method.uses) - (set() if config.em.iterations else {"rule"})
    return {
        "protocol": config.protocol.name,
        "data": pair.name,
        **{group: config[group].name if group in used else "none" for group in OPTIONAL},
        "method": method_name(config),
        "split": config.split.name,
        "ratio": config.ratio.value if config.split.name == "random" else None,
        "num_links": {
            "train": len(split.supervision.train),
            "validation": len(split.supervision.validation),
            "test": len(split.test),
        },
        "seed": config.seed,
        "split_seed": config.split_seed,
    }


def _mapping(split: Split, observer: EvaluationObserver) -> dict[str, Any]:
    """Precision, recall and F1 over all unlabelled source entities, and of mutual pairs alone."""
    assert observer.last is not None
    answer = observer.last.answer
    best, probs = answer.best_targets(), answer.probs.max(1).values
    mutual = _chosen_back(observer.last, best, probs).cpu().numpy()
    known = np.concatenate([split.supervision.train, split.supervision.validation])[:, 0]
    # a ranking may leave entities without an answer
    sources = np.setdiff1d(np.flatnonzero(probs.cpu().numpy() > 0), known)
    pairs = np.stack([sources, best.cpu().numpy()[sources]], axis=1)
    return {
        "all": mapping_metrics(pairs, split.test),
        "mutual": mapping_metrics(pairs[mutual[sources]], split.test),
    }


def _chosen_back(report: IterationReport, best: Tensor, probs: Tensor) -> Tensor:
    """``[num_source]`` bool: whether an entity's answer would answer with it."""
    ranking = report.answer_ranking
    if ranking is None:
        # an unlabelled entity's most probable candidate is its nearest: no need to search again
        forward = Candidates(best.unsqueeze(1), probs.unsqueeze(1))
        return mutual_best(forward, top_candidates(report.similarity.reversed(), 1))
    table, scores = ranking.table, ranking.scores
    lowest = scores.new_full((table.num_target,), -torch.inf)
    return scores.max(1).values >= table.max_by_target(scores, lowest)[best]
