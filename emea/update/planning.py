"""Decides what an update recomputes: nothing, the surroundings of the changes, or everything."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from emea.data.arrays import NO_MATCH, IntArray
from emea.em.local import LocalUpdate
from emea.matching.beliefs import Beliefs
from emea.record.file_names import CHECKPOINT_FILE
from emea.run.finished_run import FinishedRun
from emea.run.warm_start import WarmStart
from emea.update.graph_versions import Versions
from emea.update.updating import Update

LARGEST_SHARE = 1 / 3
"""If a larger share of the entities is affected, everything is recomputed."""

FORMER_PROB = 0.1
"""Former candidates of at least this probability belong to the surroundings of an entity."""

NOTHING, LOCAL, COMPLETE = "nothing", "local", "complete"


class Affected(NamedTuple):
    """Marks the source and the target entities of the new graphs that a change affects."""

    source: np.ndarray
    target: np.ndarray

    @property
    def share(self) -> float:
        """Share of the affected entities among all entities."""
        num = len(self.source) + len(self.target)
        return float(self.source.sum() + self.target.sum()) / max(1, num)

    def joined(self, links: IntArray) -> "Affected":
        """Return these entities and those of the links."""
        joined = Affected(self.source.copy(), self.target.copy())
        for side, entities in zip(joined, links.T, strict=True):
            side[entities] = True
        return joined


def affected_entities(
    versions: Versions, beliefs: Beliefs, pairs: IntArray
) -> Affected:
    """Return the entities whose evidence a change of the graphs or labels touches.

    These are new entities, the ends of added and removed triples, and the entities of changed pairs
    with their neighbours. Probable former candidates of affected entities on the other side are
    affected, too, and so are the entities that lost a candidate because it no longer exists.

    Args:
        versions: Both versions of the source graph and of the target graph.
        beliefs: Beliefs of the earlier run, in the ids of the earlier versions.
        pairs: ``[n, 2]`` links and rejected pairs that the run did not have, in the later ids.
    """
    changed = []
    for column, one in enumerate(versions):
        entities = np.zeros(one.new.num_entities, dtype=bool)
        entities[pairs[:, column]] = True
        heads = one.new.triples[:, 0]
        tails = one.new.triples[:, 2]
        near = tails[entities[heads]], heads[entities[tails]]
        entities[np.concatenate(near)] = True
        changed.append(entities | one.is_changed())
    return _with_former(changed, versions, beliefs)


def _with_former(
    changed: Sequence[np.ndarray], versions: Versions, beliefs: Beliefs
) -> Affected:
    """Add the former candidates of changed entities, and entities whose candidates are gone."""
    probs = beliefs.probs.numpy()
    targets = beliefs.targets.numpy()
    rows, slots = np.nonzero(probs >= FORMER_PROB)
    best = np.flatnonzero(probs.max(1, initial=0) > 0)
    rows = np.append(rows, best)
    slots = np.append(slots, probs[best].argmax(1))
    ends = (
        versions[0].new_entities[rows],
        versions[1].new_entities[targets[rows, slots]],
    )
    is_gone = [side == NO_MATCH for side in ends]
    is_changed = [
        gone | entities[np.where(gone, 0, side)]
        for gone, entities, side in zip(is_gone, changed, ends, strict=True)
    ]
    found = [entities.copy() for entities in changed]
    for side, other in ((0, 1), (1, 0)):
        found[side][ends[side][is_changed[other] & ~is_gone[side]]] = True
    return Affected(found[0], found[1])


def moved_beliefs(beliefs: Beliefs, versions: Versions) -> Beliefs:
    """Return beliefs of an earlier run in the ids of the later graphs.

    Rows of new entities are empty. Candidates that no longer exist move behind the others and have
    probability 0.
    """
    source, target = versions
    known = source.old_entities != NO_MATCH
    old = torch.from_numpy(source.old_entities[known])
    moved = torch.from_numpy(target.new_entities)[beliefs.targets[old]]
    order = torch.argsort((moved == NO_MATCH).long(), dim=1, stable=True)
    moved = moved.gather(1, order)
    probs = beliefs.probs[old].gather(1, order)
    probs = torch.where(moved == NO_MATCH, 0.0, probs)
    moved = torch.where(moved == NO_MATCH, moved[:, :1].clamp(min=0), moved)
    shape = source.new.num_entities, beliefs.num_candidates
    targets = torch.zeros(shape, dtype=torch.int64)
    rows = torch.from_numpy(np.flatnonzero(known))
    all_probs = probs.new_zeros(shape)
    targets[rows], all_probs[rows] = moved, probs
    return Beliefs(targets, all_probs)


@dataclass(frozen=True, eq=False)
class Plan:
    """Says what an update recomputes.

    Args:
        kind: ``nothing``, ``local`` or ``complete``.
        reason: Why everything is recomputed; empty otherwise.
        affected: The entities that the change affects.
        start: The state from which the update starts; ``None`` for a baseline.
    """

    kind: str
    reason: str
    affected: Affected
    start: WarmStart | None

    def summary(self, recomputed: Mapping[str, float]) -> dict[str, object]:
        """Return the plan by name, for ``update.json``.

        Args:
            recomputed: Number of recomputed entities by side.
        """
        said = {"kind": self.kind, **({"reason": self.reason} if self.reason else {})}
        return {**said, "affected_share": round(self.affected.share, 4), **recomputed}


def plan_update(update: Update, complete: bool = False) -> Plan:
    """Return what an update recomputes.

    Args:
        update: The new versions of the graphs.
        complete: Recompute everything.
    """
    run = update.run
    affected = affected_entities(update.versions, run.beliefs, update.new_pairs())
    # literals are not compared with those of the earlier graphs
    if not (update.is_changed or _uses_literals(run) or complete):
        return Plan(NOTHING, "", affected, None)
    reason = "it was requested" if complete else _obstacle(run)
    if not reason and affected.share > LARGEST_SHARE:
        reason = f"{affected.share:.0%} of the entities are affected"
    start = update.start() if run.neural is not None else None
    if reason or start is None:
        return Plan(COMPLETE, reason, affected, start)
    affected = affected.joined(_fitting_links(update))
    local = local_update(update, affected, start)
    # entities that exist already keep their embeddings; new ones start from their neighbours
    entities = replace(start.maps[0], edges=new_edges(update))
    start = replace(start, maps=[entities, *start.maps[1:]], local=local)
    return Plan(LOCAL, "", affected, start)


def _obstacle(run: FinishedRun) -> str:
    """Return why only a complete update of a run is possible; empty if a local one is."""
    if run.neural is None:
        return "baselines are computed from the beginning"
    if len(run.settings.models) > 1:
        return "the run has an ensemble of encoders"
    if _uses_literals(run):
        return "the run compares literals"
    if run.settings.models[0].optimizer and not (run.folder / CHECKPOINT_FILE).exists():
        return "the folder of the run has no checkpoint of the encoder"
    return ""


def _uses_literals(run: FinishedRun) -> bool:
    return run.settings.name("literals") != "none"


def _fitting_links(update: Update) -> IntArray:
    """Return the links on which weights are fitted; their entities are recomputed.

    The paper's step fits weights on training links, too.
    """
    if update.run.settings.uses_two_way:
        return update.split.validation
    return np.concatenate([update.split.train, update.split.validation])


def local_update(update: Update, affected: Affected, start: WarmStart) -> LocalUpdate:
    """Return the entities to recompute, and the former beliefs of the others."""
    run = update.run
    versions = update.versions
    assert run.neural is not None
    matched = torch.zeros(len(affected.target), dtype=torch.bool)
    matched[start.known.pairs()[:, 1]] = True
    target = torch.from_numpy(affected.target)
    return LocalUpdate(
        torch.from_numpy(affected.source),
        target,
        target & ~matched,
        moved_beliefs(run.neural, versions),
        None if run.joint is None else moved_beliefs(run.joint, versions),
    )


def new_edges(update: Update) -> IntArray:
    """Return each new entity with its neighbours that existed, in joint ids, ``[n, 2]``."""
    found = []
    shift = 0
    for one in update.versions:
        ends = one.new.triples[:, [0, 2]]
        ends = np.concatenate([ends, ends[:, ::-1]])
        is_new = one.old_entities == NO_MATCH
        ends = ends[is_new[ends[:, 0]] & ~is_new[ends[:, 1]]]
        found.append(np.unique(ends, axis=0) + shift)
        shift += one.new.num_entities
    return np.concatenate(found)
