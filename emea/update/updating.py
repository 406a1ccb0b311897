"""Aligns new versions of the graphs of a finished run, starting from its state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.answer.curation import ACCEPTED, REJECTED, Curated
from emea.config.composition import composed
from emea.data.arrays import NO_MATCH, IntArray, are_among
from emea.data.formats.settings import GraphForm
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.data.links import check_rejected
from emea.data.split import has_literals
from emea.em.two_way_step import LIKELY
from emea.errors import DataError
from emea.fit.checkpoint import below
from emea.fit.tensor_file import read_tensors
from emea.matching.beliefs import Matching
from emea.matching.rejected_pairs import RejectedPairs
from emea.record.checked_files import read_file
from emea.record.file_names import CHECKPOINT_FILE
from emea.record.run_header import with_own_store
from emea.run.finished_run import FinishedRun, read_records, write_run
from emea.run.warm_start import RowMap, WarmStart, joint_rows
from emea.update.graph_versions import Answers, GraphVersions, Versions, places_by_name

READING = (
    *(
        "format",
        "on_error",
        "keep_isolated",
        "keep_literals",
        "attributes",
        "label_language",
    ),
    *(
        "iri_names",
        "prefixes",
        "links_format",
        "limits",
        *(one.name for one in fields(GraphForm)),
    ),
)
"""Settings of data=files with which new files are read."""

NO_TEST_LINKS = (
    "The run used protocol=released, which needs test links, but none is left: all of them are "
    "among the new links, or their entities no longer exist. Leave some test links out of --links, "
    "or align the new files with emea align and protocol=strict."
)


TAKE_BACK = "put it into a file and name it as --take-back"
"""How an earlier decision is withdrawn."""

Named = tuple[str, str]
"""The names of a source entity and a target entity."""


@dataclass(frozen=True, eq=False)
class Update:
    """The new versions of a run's graphs, with the links of the run.

    Args:
        run: The finished run.
        pair: The new graphs; links of entities that no longer exist are left out.
        versions: Both versions of the source graph and of the target graph, in the ids of the run
            and of ``pair``.
        accepted: New links, by name.
        rejected: New rejected pairs, by name.
        taken_back: Links and rejected pairs of the run that no longer hold, by name.
    """

    run: FinishedRun
    pair: GraphPair
    versions: Versions
    accepted: Sequence[Named] = ()
    rejected: Sequence[Named] = ()
    taken_back: Sequence[Named] = ()

    @classmethod
    def of(
        cls,
        run: FinishedRun,
        source: KnowledgeGraph,
        target: KnowledgeGraph,
        links: IntArray,
        rejected: IntArray,
        *,
        taken_back: IntArray | None = None,
    ) -> "Update":
        """Join the run's links and the new ones.

        Args:
            run: The finished run.
            source: The new source graph.
            target: The new target graph.
            links: ``[n, 2]`` further links in the ids of the new graphs; known ones may be
                repeated.
            rejected: ``[n, 2]`` further rejected pairs.
            taken_back: ``[n, 2]`` links and rejected pairs of the run that no longer hold.

        Raises:
            DataError: If a link contradicts a link of the run, a rejected pair is a known link, or
                no training link is left, or no test link of a run with ``protocol=released``, or a
                pair that is taken back was not decided.
        """
        versions = _versions(run, source, target)
        gone = np.zeros((0, 2), dtype=np.int64) if taken_back is None else taken_back
        _check_decided(gone, run, versions)
        split = _joined_split(run, versions, links, gone)
        known = np.concatenate([split.train, split.validation])
        named = partial(_named, source, target)
        decided = named(links), named(rejected), named(gone)
        check_rejected(rejected, known, source, target, TAKE_BACK)
        if run.pair.rejected is not None:
            before = _moved(run.pair.rejected, versions)
            before = before[~are_among(before, gone)]
            before = before[~are_among(before, known)]  # a new link is accepted now
            rejected = np.concatenate([before, rejected])
        unmatched = run.pair.unmatched
        if unmatched is not None:  # without those that are linked or removed now
            linked = np.concatenate([known, split.test])[:, 0]
            unmatched = np.setdiff1d(
                versions[0].new_entities[unmatched], [*linked, NO_MATCH]
            )
        # the ids of the pair are shuffled, so names must identify its entities
        pair = GraphPair(
            run.pair.name,
            replace(source, entity_names=source.all_entity_names),
            replace(target, entity_names=target.all_entity_names),
            np.concatenate([known, split.test]),
            split,
            num_absent=run.split.num_missed,
            rejected=np.unique(rejected, axis=0) if len(rejected) else None,
            unmatched=unmatched,
            cardinality=run.pair.cardinality,
        ).shuffled()
        return cls(run, pair, _versions(run, pair.source, pair.target), *decided)

    @property
    def split(self) -> OfficialSplit:
        """The links of the update in the ids of ``pair``."""
        assert self.pair.official is not None
        return self.pair.official

    def start(self) -> WarmStart:
        """Return the state of the run in the ids of the new graphs."""
        pairs, probs = mutual_matches(self.run)
        moved = _moved_rows(pairs.numpy(), self.versions)
        train = self.split.train
        kept = (moved != NO_MATCH).all(1) & _apart(moved, train)
        kept &= ~RejectedPairs(self.pair.rejected).among(moved)
        moved = moved[kept]
        weights = probs[torch.from_numpy(kept)]
        num_source = self.pair.source.num_entities
        num_target = self.pair.target.num_entities
        # crossed links are validation links, too: no encoder starts from all of them
        certain = train[: 0 if self.run.split.supervision.is_crossed else None]
        known = Matching.of_links(
            torch.from_numpy(certain.copy()), num_source, num_target
        )
        known.targets[moved[:, 0]] = torch.from_numpy(moved[:, 1])
        known.probs[moved[:, 0]] = weights.double()
        checkpoint = kept_checkpoint(self.run)
        encoder = (
            {} if checkpoint is None else below(read_tensors(checkpoint)[0], "module.")
        )
        entities = [
            RowMap(one.old_entities, one.old.num_entities) for one in self.versions
        ]
        relations = [
            RowMap(one.old_relations, one.old.num_relations) for one in self.versions
        ]
        maps = [
            joint_rows(entities),
            joint_rows(relations, 2),
            joint_rows(relations, 1),
        ]
        two_way = self.run.settings.two_way
        is_weighted = two_way is not None and two_way.values.get("weighted_labels")
        weighted = weights.float() if is_weighted else None
        return WarmStart(known, moved, weighted, encoder, maps)

    @property
    def is_changed(self) -> bool:
        """Whether the graphs or the known links differ from those of the run."""
        sizes = (
            len(part) for one in self.versions for part in (one.added, one.removed)
        )
        gone = ((one.new_entities == NO_MATCH).any() for one in self.versions)
        return any(sizes) or any(gone) or len(self.new_pairs()) > 0

    def new_pairs(self) -> IntArray:
        """Return links and rejected pairs that the run did not have, ``[n, 2]``."""
        known = self.run.split.supervision
        split = self.split
        parts = [(known.train, split.train), (known.validation, split.validation)]
        if self.pair.rejected is not None:
            before = self.run.pair.rejected
            parts.append(
                (known.train[:0] if before is None else before, self.pair.rejected)
            )
        new = [now[~are_among(now, _moved(old, self.versions))] for old, now in parts]
        return np.concatenate([*new, self._pairs(self.taken_back)])

    def _pairs(self, names: Sequence[Named]) -> IntArray:
        """Return pairs of names in the ids of ``pair``, ``[n, 2]``."""
        sides = (self.pair.source, self.pair.target)
        columns = zip(*names, strict=True) if names else ((), ())
        found = [
            places_by_name(list(column), graph.all_entity_names)
            for column, graph in zip(columns, sides, strict=True)
        ]
        return np.stack(found, axis=1)

    def decisions(self, author: str, date: str) -> list[Curated]:
        """Return the decisions of the run that still hold, and the new ones.

        Args:
            author: Who made the new decisions; empty if it is unknown.
            date: The date of the new decisions.
        """
        new = [Curated(*one, ACCEPTED, author, date) for one in self.accepted]
        new += [Curated(*one, REJECTED, author, date) for one in self.rejected]
        # decisions about entities that no longer exist are gone, too
        known = np.concatenate([self.split.train, self.split.validation])
        holding = {
            ACCEPTED: named_pairs(self.pair, known),
            REJECTED: named_pairs(self.pair, self.pair.rejected),
        }
        decided = {one.pair for one in new}
        kept = [
            one
            for one in self.run.decisions
            if one.pair in holding[one.decision] and one.pair not in decided
        ]
        return [*kept, *new]


def update_config(run: FinishedRun, iterations: int = 1, is_local: bool = False) -> Any:
    """Return the settings of an update: few iterations and a short first training.

    The graphs are stored in the folder of the update, because the links come from the run.

    Args:
        run: The finished run.
        iterations: Largest number of EM iterations.
        is_local: Whether only affected entities are recomputed.
    """
    config = with_own_store(run.config.copy())
    kept = {key: run.config.data[key] for key in READING if key in run.config.data}
    mark = {
        "updated_from": run.header.run_id,
        **({"is_local": True} if is_local else {}),
    }
    config.data = {"name": run.pair.name, **mark, **kept}
    # all links keep their parts, so a run without validation links gets none
    none = [] if len(run.split.supervision.validation) else ["split.num_validation=0"]
    config.split = composed(["data=files", "split=known", *none]).split
    config.initial_from = None
    config.skip_recorded = (
        False  # a recorded run with these settings did not start from this one
    )
    if config.em.get("iterations"):
        config.em.iterations = max(1, min(int(config.em.iterations), iterations))
    is_kept = kept_checkpoint(run) is not None
    if is_kept and run.neural is not None and not config.model.get("restart"):
        config.model.initial_epochs = config.model.epochs_per_iteration
    return config


def kept_checkpoint(run: FinishedRun) -> Path | None:
    """Return the checkpoint of the encoders that an update continues.

    The folds of crossed links change, so their encoders have seen links that are held out now.
    """
    file = run.folder / CHECKPOINT_FILE
    return file if file.exists() and not run.split.supervision.is_crossed else None


def mutual_matches(run: FinishedRun) -> tuple[Tensor, Tensor]:
    """Return the pairs in which each entity is the other's most probable one, and their beliefs.

    As in EM, beliefs are above 0.5 if the run estimated how many entities have a counterpart.
    """
    beliefs = run.beliefs
    least = LIKELY if run.metrics.get("counterparts") else 0.0
    probs = beliefs.probs.max(1).values
    targets = beliefs.best_targets()
    best = probs.new_zeros(run.pair.target.num_entities)
    best.scatter_reduce_(0, beliefs.targets.flatten(), beliefs.probs.flatten(), "amax")
    sources = ((probs > least) & (probs >= best[targets])).nonzero().squeeze(1)
    # if several source entities tie for a target, none of them has it
    claims = torch.bincount(targets[sources], minlength=len(best))
    sources = sources[claims[targets[sources]] == 1]
    return torch.stack([sources, targets[sources]], dim=1), probs[sources]


def copy_run(run: FinishedRun, folder: Path) -> None:
    """Write a copy of a run, with its encoder if it has one, into another folder."""
    checkpoint = run.folder / CHECKPOINT_FILE
    records = read_records(run.folder)
    if checkpoint.exists():
        records = {CHECKPOINT_FILE: read_file(checkpoint), **records}
    write_run(folder, run, records)


def named_answers(pair: GraphPair, answers: Mapping[int, tuple[int, float]]) -> Answers:
    """Return the matches of a run by name."""
    source = pair.source.entity_name
    target = pair.target.entity_name
    return {
        source(one): (target(other), prob) for one, (other, prob) in answers.items()
    }


def named_pairs(pair: GraphPair, pairs: IntArray | None) -> set[tuple[str, str]]:
    """Return pairs of entities by name."""
    source = pair.source.entity_name
    target = pair.target.entity_name
    return (
        set() if pairs is None else {(source(a), target(b)) for a, b in pairs.tolist()}
    )


def _versions(
    run: FinishedRun, source: KnowledgeGraph, target: KnowledgeGraph
) -> Versions:
    return GraphVersions.of(run.pair.source, source), GraphVersions.of(
        run.pair.target, target
    )


def _named(
    source: KnowledgeGraph, target: KnowledgeGraph, pairs: IntArray
) -> list[Named]:
    return [
        (source.entity_name(one), target.entity_name(other))
        for one, other in pairs.tolist()
    ]


def _check_decided(taken_back: IntArray, run: FinishedRun, versions: Versions) -> None:
    """Check that each pair that is taken back is a known link or a rejected pair of the run.

    Raises:
        DataError: If a pair is neither. The error names it.
    """
    known = run.split.supervision
    parts = [known.train, known.validation]
    parts += [] if run.pair.rejected is None else [run.pair.rejected]
    decided = _moved(np.concatenate(parts), versions)
    for source, target in taken_back[~are_among(taken_back, decided)].tolist():
        names = versions[0].new.entity_name(source), versions[1].new.entity_name(target)
        raise DataError(
            f"{names[0]} and {names[1]} are neither a known link nor a rejected pair of the run. "
            "Only such pairs can be taken back. Remove the pair from the file."
        )


def _joined_split(
    run: FinishedRun, versions: Versions, links: IntArray, taken_back: IntArray
) -> OfficialSplit:
    """Return the links of a run that still hold, and the new training links.

    Args:
        run: The finished run.
        versions: Both versions of both graphs; links of entities that no longer exist are left out.
        links: ``[n, 2]`` new links.
        taken_back: ``[n, 2]`` pairs that are not links any more.

    Raises:
        DataError: If a link contradicts a link of the run, or no training link is left, or no
            test link of a run with ``protocol=released``.
    """
    known = run.split.supervision
    held_out = known.validation[: 0 if known.is_crossed else None]
    train, validation = (_moved(part, versions) for part in (known.train, held_out))
    train, validation = (
        part[~are_among(part, taken_back)] for part in (train, validation)
    )
    added = _new_links(links, np.concatenate([train, validation]), versions)
    train = np.concatenate([train, added])
    # literals can take the place of links
    if len(known.train) and not len(train) and not has_literals(run.pair):
        raise DataError(
            "No training link is left: all of them are taken back, or their entities no longer "
            "exist. Give further links with --links."
        )
    test = _moved(run.split.test, versions)
    test = test[_apart(test, train)]
    if run.config.protocol.name == "released" and not len(test):
        raise DataError(NO_TEST_LINKS)
    # test links of unknown entities have no ids, so they stay missed
    return OfficialSplit(train, validation, test, run.split.num_missed)


def _apart(pairs: IntArray, links: IntArray) -> np.ndarray:
    """Return which pairs have no entity in common with the links."""
    return ~np.isin(pairs[:, 0], links[:, 0]) & ~np.isin(pairs[:, 1], links[:, 1])


def _moved_rows(links: IntArray, versions: Versions) -> IntArray:
    source, target = versions
    return np.stack(
        [source.new_entities[links[:, 0]], target.new_entities[links[:, 1]]], axis=1
    )


def _moved(links: IntArray, versions: Versions) -> IntArray:
    """Return the links in the ids of the new graphs, without those that lost an entity."""
    moved = _moved_rows(links, versions)
    kept: IntArray = moved[(moved != NO_MATCH).all(1)]
    return kept


def _new_links(links: IntArray, known: IntArray, versions: Versions) -> IntArray:
    """Return the links that are not known.

    Raises:
        DataError: If an entity has another link already.
    """
    new = links[~are_among(links, known)]
    for column, side in enumerate(("source", "target")):
        twice = np.flatnonzero(np.isin(new[:, column], known[:, column]))
        if len(twice):
            name = versions[column].new.entity_name(int(new[twice[0], column]))
            raise DataError(
                f"The {side} entity {name} already has another link in the run. To replace that "
                f"link, {TAKE_BACK}."
            )
    return new
