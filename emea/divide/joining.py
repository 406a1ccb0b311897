"""Joins the runs of all parts of a division into one run over the whole graphs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.config.paths import PART_READER
from emea.data.arrays import FloatArray, IntArray
from emea.data.graph_pair import GraphPair
from emea.data.settings import Cardinality
from emea.divide.division import (
    Division,
    PartEntities,
    read_entities,
    read_graphs,
    visible_checksum,
)
from emea.em.earlier_fits import calibrated
from emea.errors import DataError
from emea.evaluation.joint_ranks import candidate_ranks
from emea.evaluation.metrics import accuracy_by_degree, mapping_metrics
from emea.evaluation.ranks import (
    Missed,
    Ranks,
    both_pools,
    matched_metrics,
    matched_ranks,
    ranking_metrics,
)
from emea.kernels.passes import MAX_LOGIT
from emea.matching.beliefs import Beliefs
from emea.matching.matching_marginals import log_marginals, matching_messages
from emea.matching.pair_table import LabelledSlots, PairTable, ScoredPairs, tabulate
from emea.record.checked_files import BackgroundWriter, digest
from emea.record.run_folder import (
    BELIEFS_FILE,
    answered_entry,
    check_files,
    read_config,
    read_metrics,
)
from emea.record.run_header import with_own_store
from emea.record.run_record import (
    FINGERPRINT_TAG,
    JOINED_TAG,
    RunHeader,
    is_finished,
    read_header,
)
from emea.record.sync import find_run_folders
from emea.run.finished_run import read_beliefs
from emea.run.observer import announced_sample, compatibility_section, hard_mapping
from emea.run.outcome import Numbers, Outcome, RunInputs

KEPT, WIDTH = 10, 20
"""Candidates of a source entity that a run of a part contributes, and those of the joined run."""

LEAST_PROB = 1e-4
"""Candidates with a smaller probability are left out."""

LEAST_FREE = 0.02
"""Smallest probability to match none with which potentials are computed from marginals."""

LEAST_SEEN = 0.05
"""Smallest weight of a judgement on an entity: the share of its triples that the part contains."""

NUM_PASSES = 50
"""Most passes of the inference, which starts from the marginals of the parts."""

OWN_KEYS = ("data.", "tracking.", "trainer.", "skip_recorded", "study", "trust")
"""Settings that may differ between the parts of one alignment."""


@dataclass(frozen=True)
class PartRun:
    """A finished run of a part."""

    folder: Path
    number: int
    header: RunHeader

    @property
    def method(self) -> frozenset[tuple[str, str]]:
        """The settings that all parts of one alignment have in common."""
        params = self.header.params.items()
        return frozenset(
            (key, str(one)) for key, one in params if not key.startswith(OWN_KEYS)
        )


def chosen_runs(division: Division, roots: Sequence[Path]) -> list[PartRun]:
    """Return the last finished run of each part, for each choice of settings.

    Raises:
        DataError: If a run belongs to another division, or a part has no finished run.
    """
    numbers = {one.checksum: number for number, one in enumerate(division.parts)}
    by_method: dict[frozenset[tuple[str, str]], dict[int, PartRun]] = {}
    for folder in find_run_folders(roots):
        header = read_header(folder)
        if header.params.get("data._target_") != PART_READER or not is_finished(folder):
            continue
        number = numbers.get(header.tags.get("data_checksum", ""))
        if number is None:
            raise DataError(
                f"{folder} is the run of a part of another division. Name only folders with runs "
                "of this division."
            )
        found = PartRun(folder, number, header)
        before = by_method.setdefault(found.method, {}).setdefault(number, found)
        if before.header.start_time < header.start_time:
            by_method[found.method][number] = found
    for runs in by_method.values() or [{}]:
        missing = [str(number) for number in numbers.values() if number not in runs]
        if missing:
            alike = next(
                (f" with the settings of {one.folder}" for one in runs.values()), ""
            )
            raise DataError(
                f"{'Parts' if len(missing) > 1 else 'Part'} {', '.join(missing)} of "
                f"{len(numbers)} have no finished run{alike} in {', '.join(map(str, roots))}. Run "
                "them with data.part, and join again."
            )
    return [runs[number] for runs in by_method.values() for number in sorted(runs)]


def joined_config(division: Path, runs: Sequence[PartRun]) -> Any:
    """Return the settings of the parts with the data and the split of the division."""
    config = with_own_store(read_config(runs[0].folder))
    whole = read_config(division)
    for key in ("data", "split", "ratio", "split_seed"):
        config[key] = whole[key]
    config.skip_recorded, config.initial_from = False, None
    return config


def joined_tags(runs: Sequence[PartRun]) -> dict[str, str]:
    """Return tags that tell a joined run from one that trained on the whole graphs."""
    ids = [one.header.run_id for one in runs]
    return {FINGERPRINT_TAG: digest({"joined": ids}), JOINED_TAG: str(len(runs))}


class JoinedRun:
    """Has the methods of a run that trains, but takes the beliefs of the runs of all parts.

    Args:
        division: The folder of the division.
        runs: The runs of its parts.
        inputs: Settings, graphs and links of the whole.

    Raises:
        DataError: If the data changed since the division.
    """

    def __init__(
        self, division: Path, runs: Sequence[PartRun], inputs: RunInputs
    ) -> None:
        graphs = replace(inputs.graphs, literals=None)
        if (
            visible_checksum(graphs, inputs.split.supervision)
            != Division.read(division).checksum
        ):
            raise DataError(
                f"The graphs or the known links of {graphs.name} changed since they were divided "
                f"into {division}. Restore them, or divide and run again."
            )
        self.division, self.runs, self.inputs = division, runs, inputs
        self.is_joint = inputs.settings.answers_jointly
        self.labels = torch.from_numpy(inputs.visible.train.copy())
        self.neural: Beliefs | None = None
        self.joint: Beliefs | None = None

    def train(
        self, folder: Path, resume_from: Path | None, writer: BackgroundWriter
    ) -> None:
        """Read the beliefs of all parts and infer those of the whole."""
        of_neural: list[JudgedPairs] = []
        of_joint: list[JudgedPairs] = []
        graphs = self.inputs.graphs
        sizes = graphs.source.num_entities, graphs.target.num_entities
        for run in self.runs:
            part = read_graphs(self.division, run.number)
            entities = read_entities(self.division, run.number, sizes)
            neural, joint, *_ = read_beliefs(run.folder / BELIEFS_FILE, part)
            check_files(run.folder, read_metrics(run.folder))
            for beliefs, found in ((neural, of_neural), (joint, of_joint)):
                if beliefs is not None:
                    found.append(JudgedPairs.of(entities, beliefs))
        self.is_joint = bool(of_joint) and (self.is_joint or not of_neural)
        self.neural = self._joined(of_neural, not self.is_joint) if of_neural else None
        self.joint = self._joined(of_joint, self.is_joint) if of_joint else None

    def _joined(self, judged: "Sequence[JudgedPairs]", is_answer: bool) -> Beliefs:
        """Return the mean beliefs, and for the answer one inference and one calibration."""
        graphs = self.inputs.graphs
        labels = self.labels
        num_source = graphs.source.num_entities
        num_target = graphs.target.num_entities
        pairs = mean_judgements(judged, num_target)
        order = torch.zeros(len(pairs.scores))
        table = tabulate(pairs, order, num_source, num_target, WIDTH)
        found = Beliefs(
            table.targets, torch.where(table.filled, table.scores, 0.0).float()
        )
        if graphs.cardinality != Cardinality.ONE_TO_ONE:
            return found  # entities may have several matches, which do not compete
        if not is_answer:
            return found.clamped(labels)
        found = one_to_one(table, labels)
        free = torch.ones(num_source, dtype=torch.bool)
        free[labels[:, 0]] = False
        # the parts' beliefs count entities without a counterpart, too
        share = (
            float(found.probs[free].sum(1).mean().clamp(LEAST_FREE, 1))
            if free.any()
            else 1.0
        )
        validation = torch.from_numpy(self.inputs.visible.validation.copy())
        return calibrated(found, validation, share=share).clamped(labels)

    def outcome(self, pair: GraphPair) -> Outcome:
        """Return the joined beliefs, measured on all test links."""
        split = self.inputs.split
        answer = self.joint if self.is_joint else self.neural
        assert answer is not None, "a run has beliefs"
        ranked = announced_sample(split.test)
        first = answer if self.neural is None else self.neural
        beliefs = {"initial": first, "final": answer}
        ranks = {name: candidate_ranks(one, ranked) for name, one in beliefs.items()}
        return Outcome(
            neural=self.neural,
            joint=self.joint,
            beliefs=answer,
            labels=self.labels,
            judged=split,
            ranks=ranks,
            scores=self._scores(pair, answer, ranks, ranked),
            losses=[],
        )

    def _scores(
        self,
        pair: GraphPair,
        answer: Beliefs,
        ranks: dict[str, Ranks],
        ranked: IntArray,
    ) -> Numbers:
        """Return the sections of ``metrics.json``; without an encoder, only candidates rank."""
        split = self.inputs.split
        known = self.inputs.visible
        pool_size = max(1, len(np.unique(split.test[:, 1])))
        missed = Missed(split.missed_share, pool_size, max(1, pair.target.num_entities))
        initial, final = (both_pools(one, missed) for one in ranks.values())
        best = hard_mapping(answer)
        given = np.concatenate([known.train, known.validation])[:, 0]
        sources = np.setdiff1d(np.flatnonzero(best >= 0), given)
        pairs = np.stack([sources, best[sources]], axis=1)
        mapping = mapping_metrics(pairs, split.test, split.num_missed)
        validation = ranking_metrics(candidate_ranks(answer, known.validation).in_all)
        entry: Numbers = {
            "iteration": 0,
            "neural": initial,
            "joint": final if self.is_joint else None,
            "validation": validation,
            "num_observed": len(ranked),
            "seconds": {},
            **self._of_parts(),
        }
        reverse = matched_metrics(matched_ranks(pairs, ranked), split.missed_share)
        by_degree = pair.source.degrees()[ranked[:, 0]]
        mappings = {"final": best}
        device = self.inputs.device
        return {
            "initial": initial,
            "final": final,
            "final_reverse": reverse,
            "mapping": {"all": mapping, "mutual": mapping},
            "compatibility": compatibility_section(pair, split, mappings, device),
            "by_degree": accuracy_by_degree(ranks["final"].in_pool, by_degree),
            "history": [entry],
        }

    def _of_parts(self) -> Numbers:
        """Return the mean weights of the rules, and time and memory of the runs of the parts."""
        metrics = [read_metrics(one.folder, is_complete=True) for one in self.runs]
        weights: dict[
            str, list[float]
        ] = {}  # runs of several methods have different rules
        for one in metrics:
            for name, weight in (answered_entry(one).get("weights") or {}).items():
                if weight is not None:  # JSON has no NaN
                    weights.setdefault(name, []).append(weight)
        return {
            "weights": {name: fmean(some) for name, some in weights.items()},
            "parts": [
                {
                    "part": run.number,
                    "seconds": one["seconds"]["total"],
                    "peak_memory_mb": one.get("peak_memory_mb"),
                }
                for run, one in zip(self.runs, metrics, strict=True)
            ],
        }


@dataclass(frozen=True, eq=False)
class JudgedPairs:
    """The candidates of one run, in the ids of the whole graphs.

    Args:
        sources: ``[n]`` source entities.
        targets: ``[n]`` target entities.
        probs: ``[n]`` their probabilities.
        weights: Returns how much the run counts for each of some pairs; 0 for pairs of which its
            part lacks an entity.
    """

    sources: IntArray
    targets: IntArray
    probs: FloatArray
    weights: Callable[[IntArray, IntArray], FloatArray]

    @classmethod
    def of(cls, entities: PartEntities, beliefs: Beliefs) -> "JudgedPairs":
        """Take the best candidates of a run of a part."""
        best = beliefs.probs.topk(min(KEPT, beliefs.num_candidates), dim=1)
        rows, slots = (best.values >= LEAST_PROB).nonzero(as_tuple=True)
        targets = beliefs.targets[rows, best.indices[rows, slots]]
        seen_source = partial(_seen, entities.source, entities.source_seen)
        seen_target = partial(_seen, entities.target, entities.target_seen)
        return cls(
            entities.source[rows.numpy()],
            entities.target[targets.numpy()],
            best.values[rows, slots].double().numpy(),
            lambda sources, targets: seen_source(sources) * seen_target(targets),
        )


def _seen(entities: IntArray, shares: np.ndarray, asked: IntArray) -> FloatArray:
    """Return the share of each entity's triples in a part; 0 for entities outside it."""
    places = np.searchsorted(entities, asked).clip(max=len(entities) - 1)
    found: FloatArray = np.where(
        entities[places] == asked, np.maximum(shares[places], LEAST_SEEN), 0.0
    )
    return found


def mean_judgements(judged: Sequence[JudgedPairs], num_target: int) -> ScoredPairs:
    """Return all pairs with their mean probability in the runs whose part has both entities.

    A run counts in proportion to the triples of both entities that it has seen. A pair that is not
    a candidate of such a run has probability 0 there.
    """
    keys = np.concatenate([one.sources * num_target + one.targets for one in judged])
    distinct, index = np.unique(keys, return_inverse=True)
    sources = distinct // num_target
    targets = distinct % num_target
    sums = np.zeros(len(distinct))
    totals = np.zeros(len(distinct))
    start = 0
    for one in judged:
        weights = one.weights(sources, targets)
        own = index[start : start + len(one.probs)]
        start += len(one.probs)
        totals += weights
        sums[own] += weights[own] * one.probs
    return ScoredPairs(*map(torch.from_numpy, (sources, targets, sums / totals)))


def one_to_one(table: PairTable, labels: Tensor) -> Beliefs:
    """Return the marginals of one distribution over one-to-one matchings of all pairs.

    The mean beliefs of the parts are taken as marginals, and the potentials follow from them: at a
    fixed point of belief propagation, ``potential = p (1 - p) / (free(e) free(e'))``, where
    ``free`` is the probability that an entity has no match. So beliefs on which the parts agree
    stay as they are, and only where they exceed 1 for an entity does the inference change them.

    Args:
        table: The pairs with their mean beliefs as scores.
        labels: ``[num_labels, 2]`` links that are certain.
    """
    probs = torch.where(table.filled, table.scores, 0.0)
    bounded = probs.clamp(LEAST_PROB**2, 1 - LEAST_PROB**2)
    # the entities of a pair are free at least with the probability that it is wrong
    least = (1 - bounded).clamp(max=LEAST_FREE)
    of_source = torch.maximum(1 - probs.sum(1, keepdim=True), least)
    of_target = torch.maximum((1 - table.sum_by_target(probs))[table.targets], least)
    potentials = (bounded * (1 - bounded) / (of_source * of_target)).log()
    slots = LabelledSlots.of(table, labels)
    potentials = potentials.masked_fill(slots.impossible, -MAX_LOGIT)
    potentials = potentials.masked_fill(slots.certain, MAX_LOGIT)
    messages = matching_messages(table, potentials, max_passes=NUM_PASSES)
    belief = slots.put_into(log_marginals(table, potentials, messages)).exp()
    belief = belief / belief.sum(1, keepdim=True).clamp(min=1)
    order = torch.argsort(belief, dim=1, descending=True, stable=True)
    return Beliefs(table.targets.gather(1, order), belief.gather(1, order).float())
