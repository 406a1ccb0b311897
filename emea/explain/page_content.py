"""What the page of an alignment contains: entities, matches, triples and evidence, as one text."""

import base64
import gzip
import json
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from emea.answer.decision import Decision, with_given
from emea.answer.exporting import DIGITS, selected, top_candidates
from emea.answer.settings import ExportSettings
from emea.config.paths import READER
from emea.data.arrays import NO_MATCH, IntArray
from emea.data.attributes import LABEL_ATTRIBUTES, AttributeTriples
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import SHUFFLE_SEED
from emea.data.names import further_label_attributes
from emea.explain.explainer import Explainer
from emea.explain.explanation import beginning
from emea.matching.beliefs import Beliefs
from emea.run.finished_run import FinishedRun
from emea.run.predicting import run_decision

logger = logging.getLogger(__name__)

NUM_CANDIDATES, LEAST_CANDIDATE = 5, 0.001
"""Candidates of a source entity on the page, and their minimum probability."""

MORE_DIGITS = 7
"""Decimal places of evidence, so that probabilities next to 1 stay different."""

NUM_CARRIERS, LEAST_CARRIER = 6, 0.005
"""Counterparts of a neighbour that carry evidence on the page, and their minimum probability."""

MOST_BYTES = 13_000_000
"""Largest size of the content, so that the page stays below 15 MB."""

LABELS = (
    *LABEL_ATTRIBUTES,
    "http://www.w3.org/2004/02/skos/core#altLabel",
    "http://www.w3.org/2004/02/skos/core#hiddenLabel",
    *("skos:altLabel", "skos:hiddenLabel", "title"),
)
"""Attributes of known vocabularies whose values the search looks at, in all languages."""

OPTIONAL = ("evidence", "triples", "literals")
"""Parts of the content that are left out if it is too large, in this order."""

Json = dict[str, Any]


def page_content(
    explainer: Explainer, suggested: Sequence[tuple[int, str]], with_test: bool
) -> Json:
    """Return the content of the page as plain values; entities are numbers.

    Args:
        explainer: Explains pairs of the finished run.
        suggested: Source entities to label, each with the reason, the most helpful first.
        with_test: Whether the page may use test links.
    """
    run = explainer.run
    decision = run_decision(run, with_given(run.settings.own.export, threshold=0))
    known = run.split.supervision
    # the page shows given links, not what encoders say that were not trained on them
    validation = known.validation[: 0 if known.is_crossed else None]
    judged = [{"name": "validation links", "links": validation.tolist(), "missed": 0}]
    if with_test:
        # no match of an entity without a counterpart is right, and no link of it is missed
        unmatched = run.split.unmatched.tolist()
        test = [*run.split.test.tolist(), *([one, NO_MATCH] for one in unmatched)]
        missed = run.split.num_missed - len(unmatched)
        judged.append({"name": "test links", "links": test, "missed": missed})
    return {
        "source": _side(run.pair.source, explainer.source.shown) | _file_order(run),
        "target": _side(run.pair.target, explainer.target.shown),
        "rows": _rows(decision),
        "candidates": _candidates(
            decision.beliefs, [source for source, _ in suggested]
        ),
        "threshold": shown_settings(run).threshold,
        "known": [*run.labels.tolist(), *validation.tolist()],
        "judged": judged,
        "suggested": [list(one) for one in suggested],
        "evidence": _evidence(explainer),
    }


def packed(content: Json, most_bytes: int = MOST_BYTES) -> str:
    """Return the content as compressed JSON in base64.

    If it is too large, the evidence is left out first, then the triples and literals.
    """
    left_out: list[str] = []
    while True:
        text = json.dumps(
            content, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        )
        found = base64.b64encode(gzip.compress(text.encode(), 6, mtime=0)).decode(
            "ascii"
        )
        if len(found) <= most_bytes or len(left_out) == len(OPTIONAL):
            break
        part = OPTIONAL[len(left_out)]
        left_out.append(part)
        places = (
            [content] if part in content else [content["source"], content["target"]]
        )
        for place in places:
            place[part] = None
    if left_out:
        logger.warning(
            "The page is too large with everything: it is written without %s. `emea explain` shows "
            "the explanation of a pair.",
            " and ".join(left_out),
        )
    return found


def shown_settings(run: FinishedRun) -> ExportSettings:
    """Return the run's settings with its threshold, which is not chosen again; 1 if none fits."""
    export = run.metrics["export"]
    nothing = 1.0 if export.get("reached") is False else 0.0
    return with_given(run.settings.own.export, threshold=export["threshold"] or nothing)


def _side(graph: KnowledgeGraph, shown: KnowledgeGraph) -> Json:
    """Return a graph; ``shown`` has the literals that are evidence as further entities."""
    names = [beginning(name) for name in shown.all_entity_names]
    # the names of entities must be complete, because decisions are saved with them
    names[: graph.num_entities] = graph.all_entity_names
    is_shown = shown.num_entities > graph.num_entities
    literals = None if is_shown or graph.attributes is None else graph.attributes
    return {
        "names": names,
        "labels": None if graph.labels is None else list(graph.labels),
        "otherLabels": _other_labels(graph),
        "relations": [shown.relation_name(one) for one in range(shown.num_relations)],
        "numEntities": graph.num_entities,
        "triples": _columns(shown.triples),
        "literals": literals
        and {
            "triples": _columns(literals.triples),
            "attributes": list(literals.attribute_names),
            "values": list(map(beginning, literals.values)),
        },
    }


def searched_attributes(literals: AttributeTriples | None) -> frozenset[str]:
    """Return the attributes of a graph whose values are names."""
    further = [] if literals is None else further_label_attributes(literals)
    return frozenset([*LABELS, *further])


def _other_labels(graph: KnowledgeGraph) -> dict[int, list[str]]:
    """Return the labels of each entity that has further ones, such as those in other languages."""
    literals = graph.attributes
    if literals is None:
        return {}
    searched = searched_attributes(literals)
    is_label = np.array(
        [name in searched for name in literals.attribute_names], dtype=bool
    )
    found: dict[int, list[str]] = {}
    for entity, _, value in literals.triples[is_label[literals.triples[:, 1]]].tolist():
        text = " ".join(beginning(literals.values[value]).split())
        listed = found.setdefault(entity, [])
        if text not in (graph.entity_label(entity), *listed):
            listed.append(text)
    return {entity: texts for entity, texts in found.items() if texts}


def _file_order(run: FinishedRun) -> Json:
    """Return the place of each source entity in its file, if the ids of the run tell it.

    Readers give random ids to the entities of files, always with the same seed. An update gives
    them once more.
    """
    own = run.config.data.get("_target_") in (None, READER)
    if not own or run.config.data.get("updated_from"):
        return {"fileOrder": None}
    new_ids = np.random.default_rng(SHUFFLE_SEED).permutation(
        run.pair.source.num_entities
    )
    return {"fileOrder": np.argsort(new_ids).tolist()}


def _columns(triples: IntArray) -> list[list[int]]:
    """Return the columns of triples, sorted because equal numbers in a row compress well."""
    columns: list[list[int]] = triples[np.lexsort(triples.T[::-1])].T.tolist()
    return columns


def _rows(decision: Decision) -> Json:
    """Return one row per match, and one for each source entity without a match (target -1)."""
    entities, targets, probs = selected(decision.answer)
    sources = entities.tolist()
    witnesses = decision.witnesses()
    labels = {tuple(link) for link in decision.labels.tolist()}
    pairs = zip(sources, targets.tolist(), strict=True)
    return {
        "sources": sources,
        "targets": targets.tolist(),
        "probs": np.round(probs.astype(np.float64), DIGITS).tolist(),
        "given": [int(pair in labels) for pair in pairs],
        "witnesses": None if witnesses is None else witnesses[sources].tolist(),
        "num_witnesses": 0 if decision.votes is None else len(decision.votes),
    }


def _candidates(beliefs: Beliefs, suggested: Sequence[int]) -> list[list[float]]:
    """Return the candidates of each source entity; those to label show improbable ones, too."""
    targets, probs = map(torch.from_numpy, top_candidates(beliefs, NUM_CANDIDATES))
    least = torch.full((len(probs), 1), LEAST_CANDIDATE)
    least[list(suggested)] = 0
    return _lists(targets, probs, least, DIGITS)


def _lists(
    targets: Tensor, probs: Tensor, least: float | Tensor, digits: int = MORE_DIGITS
) -> list[list[float]]:
    """Return the starts of each row's items, and the targets and probabilities of all items."""
    kept = (probs >= least) & (probs > 0)
    starts = np.concatenate([[0], kept.sum(1).cumsum(0).numpy()])
    return [starts.tolist(), targets[kept].tolist(), _rounded(probs[kept], digits)]


def _rounded(values: Tensor, digits: int = MORE_DIGITS) -> list[float]:
    found: list[float] = np.round(values.double().numpy(), digits).tolist()
    return found


def _evidence(explainer: Explainer) -> Json:
    """Return what explains any pair: counterparts of neighbours and inclusions of relations."""
    reasoning = explainer.reasoning
    grounds = explainer.grounds
    best = torch.topk(
        grounds.carriers.probs, min(NUM_CARRIERS, grounds.carriers.probs.shape[1])
    )
    included = grounds.included
    likelier = torch.maximum(included.source_in_target, included.target_in_source)
    kept = likelier >= LEAST_CARRIER
    return {
        "carriers": _lists(
            grounds.carriers.targets.gather(1, best.indices), best.values, LEAST_CARRIER
        ),
        "inclusions": [
            included.keys[kept].tolist(),
            _rounded(included.source_in_target[kept]),
            _rounded(included.target_in_source[kept]),
        ],
        "functionality": [
            _rounded(side.inverse_functionality)
            for side in (grounds.source, grounds.target)
        ],
        "least": {
            "inclusion": grounds.least_inclusion,
            "evidence": grounds.least_evidence,
        },
        "labels": list(explainer.labels.items()),
        "rule": reasoning.rule,
        "used": reasoning.used,
    }
