"""Decides what an update recomputes: nothing, the surroundings of the changes, or everything."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch

from emea.config.idle import uses_two_way
from emea.data.arrays import NO_MATCH, IntArray
from emea.em.local import LocalUpdate
from emea.record.run_folder import CHECKPOINT_FILE
from emea.run.finished_run import FinishedRun
from emea.run.parts import member_models
from emea.run.warm_start import WarmStart
from emea.update.affected import Affected, affected_entities, moved_beliefs
from emea.update.updating import Update

LARGEST_SHARE = 1 / 3
"""If a larger share of the entities is affected, everything is recomputed."""

NOTHING, LOCAL, COMPLETE = "nothing", "local", "complete"


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


def plan_update(update: Update, complete: bool = False, hops: int = 0) -> Plan:
    """Return what an update recomputes.

    Args:
        update: The new versions of the graphs.
        complete: Recompute everything.
        hops: Distance up to which neighbours of changed entities are recomputed.
    """
    run = update.run
    affected = affected_entities(update.versions, run.beliefs, update.new_pairs(), hops)
    is_changed = update.is_changed or (
        _uses_literals(run) and any(one.has_new_literals() for one in update.versions)
    )
    if not (is_changed or complete):
        return Plan(NOTHING, "", affected, None)
    reason = "it was requested" if complete else _obstacle(run)
    if not reason and affected.share > LARGEST_SHARE:
        reason = f"{affected.share:.0%} of the entities are affected"
    start = update.start() if run.neural is not None else None
    if reason or start is None:
        return Plan(COMPLETE, reason, affected, start)
    affected = affected.joined(_fitting_links(update))
    local = local_update(update, affected, start)
    return Plan(LOCAL, "", affected, start.restricted(local, new_edges(update)))


def _obstacle(run: FinishedRun) -> str:
    """Return why only a complete update of a run is possible; empty if a local one is."""
    if run.neural is None:
        return "baselines are computed from the beginning"
    if len(member_models(run.config)) > 1:
        return "the run has an ensemble of encoders"
    if _uses_literals(run):
        return "the run compares literals"
    if run.config.model.optimizer and not (run.folder / CHECKPOINT_FILE).exists():
        return "the folder of the run has no checkpoint of the encoder"
    return ""


def _uses_literals(run: FinishedRun) -> bool:
    literals = run.config.get("literals")  # old runs do not have the group
    return literals is not None and literals.name != "none"


def _fitting_links(update: Update) -> IntArray:
    """Return the links on which weights are fitted; their entities are recomputed.

    The paper's step fits weights on training links, too.
    """
    official = update.pair.official
    assert official is not None
    if uses_two_way(update.run.config):
        return official.validation
    return np.concatenate([official.train, official.validation])


def local_update(update: Update, affected: Affected, start: WarmStart) -> LocalUpdate:
    """Return the entities to recompute, and the former beliefs of the others."""
    run, versions = update.run, update.versions
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
    found, shift = [], 0
    for one in update.versions:
        ends = one.new.triples[:, [0, 2]]
        ends = np.concatenate([ends, ends[:, ::-1]])
        is_new = one.old_entities == NO_MATCH
        ends = ends[is_new[ends[:, 0]] & ~is_new[ends[:, 1]]]
        found.append(np.unique(ends, axis=0) + shift)
        shift += one.new.num_entities
    return np.concatenate(found)
