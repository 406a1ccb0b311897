"""Entity alignment as a library: two graphs and some links in, matches out.

>>> from emea.aligner import Aligner, graph_of
>>> family = [("anna", "mother_of", "ben"), ("anna", "lives_in", "graz"), ("ben", "knows", "cleo")]
>>> familie = [("Anna", "Mutter", "Ben"), ("Anna", "Wohnort", "Graz"), ("Ben", "kennt", "Cleo")]
>>> links = [("anna", "Anna"), ("cleo", "Cleo"), ("graz", "Graz")]
>>> aligner = Aligner(model="lightea", em="dual", settings=["em.iterations=2"])
>>> aligner = aligner.fit(graph_of(family), graph_of(familie), links)
>>> {match.source: match.target for match in aligner.predict()}["ben"]
'Ben'
"""

import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from emea.data.arrays import IntArray
from emea.data.assembly import assemble_pair
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import OfficialSplit
from emea.data.link_listing import LinkListing
from emea.data.link_register import LinkRegister
from emea.data.link_resolution import EntityFinder, LinkResolver
from emea.data.prefixes import Prefixes
from emea.errors import DataError, UserError
from emea.pipeline.answering import build_answering
from emea.pipeline.decision import check_founded, decide
from emea.pipeline.explainer import Explainer
from emea.pipeline.explanation import Explanation
from emea.pipeline.export_settings import check_export, export_settings
from emea.pipeline.exporting import top_candidates
from emea.pipeline.finished_run import FinishedRun, read_run
from emea.pipeline.job import run_job
from emea.pipeline.overrides import composed
from emea.pipeline.schema import register_schema

NOT_FITTED = "nothing was fitted yet: call fit(source, target, links) first"
NONE: IntArray = np.empty((0, 2), dtype=np.int64)
MOST_UNKNOWN = 5
"""Unknown entities that an error names."""


class Match(NamedTuple):
    """A source entity and its counterpart.

    ``target`` is ``None`` where no candidate is probable enough; ``candidates`` are the most
    probable ones with their probabilities, best first, whatever the answer is.
    """

    source: str
    target: str | None
    probability: float
    candidates: list[tuple[str, float]]


def read_graph(path: str | Path) -> KnowledgeGraph:
    """A graph from a file: N-Triples, Turtle, RDF/XML, TSV or CSV (also ``.gz``), Parquet."""
    from emea.data.graph_file import read_graph_file  # its parser loads where it is needed

    return read_graph_file(Path(path))[0]


def read_links(path: str | Path) -> list[tuple[str, str]]:
    """Links from a file: two columns with or without a header, ``owl:sameAs``, or SSSOM.

    Names are in full where the file explains a prefix. ``owl:sameAs`` has no direction: ``fit``
    takes a link the way it fits the graphs.
    """
    from emea.data.link_file import read_link_file

    listing = read_link_file(Path(path))
    in_full = listing.prefixes.in_full
    return [(in_full(one), in_full(other)) for one, other in listing.links]


def graph_of(triples: Iterable[tuple[str, str, str]]) -> KnowledgeGraph:
    """A graph from (head, relation, tail) by name."""
    rows = list(dict.fromkeys(map(tuple, triples)))
    if not rows:
        raise DataError("a graph needs at least one triple")
    for row in rows:
        if len(row) != 3 or not all(isinstance(name, str) for name in row):
            raise DataError(f"a triple is a head, a relation and a tail, each a str, got {row}")
    heads, relations, tails = zip(*rows, strict=True)
    entities = {name: index for index, name in enumerate(dict.fromkeys([*heads, *tails]))}
    numbers = {name: index for index, name in enumerate(dict.fromkeys(relations))}
    ids = [[entities[head], numbers[relation], entities[tail]] for head, relation, tail in rows]
    return KnowledgeGraph(
        np.array(ids, dtype=np.int64), len(entities), len(numbers), [*entities], [*numbers]
    )


class Aligner:
    """Aligns the entities of two graphs.

    Args:
        model: the neural encoder, an option of ``conf/model``; ``lightea`` needs no training.
        em: ``dual`` (two-way compatibility), ``paper`` or ``none``.
        settings: further settings as on the command line, such as ``"em.iterations=3"``.
        folder: keeps the run with all its records; ``None``: nothing is kept.
    """

    def __init__(
        self,
        model: str = "rrea",
        em: str = "dual",
        settings: Sequence[str] = (),
        folder: str | Path | None = None,
    ) -> None:
        register_schema()
        rule = ["rule=none"] if em == "none" else []
        chosen = [f"model={model}", f"em={em}", *rule, "split=known", "tracking=none", *settings]
        self._config = composed(chosen)
        self._folder = None if folder is None else Path(folder)
        self._run: FinishedRun | None = None
        self._explainer: Explainer | None = None

    def fit(
        self,
        source: KnowledgeGraph,
        target: KnowledgeGraph,
        links: Iterable[tuple[str, str]],
    ) -> "Aligner":
        """Learn from the links, some of which are held out for validation.

        Args:
            source: the graph whose entities look for a counterpart.
            target: the graph in which they look.
            links: pairs of entity names, the source's first (or last, where only that fits), each
                entity in one of them.

        Raises:
            DataError: a link names an unknown entity or contradicts another, or there are too few.
        """
        known = _link_ids(source, target, list(links))
        pair = assemble_pair("pair", source, target, known, OfficialSplit(known, NONE, NONE))
        config = self._config.copy()
        config.data = {"name": pair.name}
        with tempfile.TemporaryDirectory(prefix="emea-") as scratch:
            folder = self._folder or Path(scratch)
            # the caller's own random numbers stay as they are
            with torch.random.fork_rng(range(torch.cuda.device_count())):
                run_job(config, folder, pair=pair)
            self._run = read_run(folder, config, pair)
            self._explainer = Explainer(self._run)
            self._explainer.prepare()
        return self

    def predict(
        self,
        top_k: int | None = None,
        threshold: float | None = None,
        target_precision: float | None = None,
    ) -> list[Match]:
        """The counterpart of every source entity, given links included.

        What is not given is as the ``export`` of the settings has it: one candidate, and no
        threshold, unless they say otherwise. ``threshold=0`` answers as much as there is.

        Args:
            top_k: candidates to name for each.
            threshold: least probability of an answer.
            target_precision: on the links held out for validation; it chooses the threshold.

        Raises:
            ConfigError: a value is none that it can have.
        """
        run = self._fitted
        settings = export_settings(run.config).with_given(
            top_k=_plain(top_k),
            threshold=_plain(threshold),
            target_precision=_plain(target_precision),
        )
        check_export(run.config, settings)
        check_founded(settings, run.split)
        validation = run.split.supervision.validation
        decision = decide(
            build_answering(run.config), run.beliefs, run.labels, settings, validation
        )
        best, probs = decision.answer.best_targets(), decision.answer.probs.max(1).values
        others, other_probs = top_candidates(decision.beliefs, settings.top_k)
        name_of = run.pair.target.entity_name
        return [
            Match(
                run.pair.source.entity_name(entity),
                name_of(int(best[entity])) if probs[entity] else None,
                float(probs[entity]),
                [
                    (name_of(candidate), prob)
                    for candidate, prob in zip(
                        others[entity].tolist(), other_probs[entity].tolist(), strict=True
                    )
                    if prob
                ],
            )
            for entity in range(run.pair.source.num_entities)
        ]

    def explain(self, source: str, target: str) -> Explanation:
        """Why a source entity is matched to a target entity, or is not."""
        explainer = self._explainer
        if explainer is None:
            raise UserError(NOT_FITTED)
        return explainer(explainer.source.find(source), explainer.target.find(target))

    def why(self, source: str, target: str) -> str:
        """The explanation as a text to print."""
        from emea.explain.terminal_text import plain_text  # rich loads where it is needed

        return plain_text(self.explain(source, target))

    @property
    def _fitted(self) -> FinishedRun:
        if self._run is None:
            raise UserError(NOT_FITTED)
        return self._run


def _plain(value: Any) -> Any:
    """The same as a number of Python's own: those of numpy's kinds are none for a config."""
    return value.item() if isinstance(value, np.generic) else value


def _link_ids(
    source: KnowledgeGraph, target: KnowledgeGraph, links: list[tuple[str, str]]
) -> IntArray:
    finders = (
        EntityFinder(source, "source", "its graph"),
        EntityFinder(target, "target", "its graph"),
    )
    resolver = LinkResolver(*finders, Prefixes(), "stop", LinkRegister())
    numbers = range(1, len(links) + 1)
    listing = LinkListing("the links", links, numbers, unit="number", symmetric=True)
    known, unknown = resolver.found(listing)
    if unknown:
        more = f" and {len(unknown) - MOST_UNKNOWN} more" if len(unknown) > MOST_UNKNOWN else ""
        raise DataError(f"{'; '.join(unknown[:MOST_UNKNOWN])}{more}")
    return np.array(resolver.registered(listing, known), dtype=np.int64).reshape(-1, 2)
