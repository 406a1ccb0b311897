"""Warnings of a run about its own result, each by one simple criterion (docs/run_folder.md)."""

import logging
from math import sqrt

import numpy as np

from emea.answer.summary import FEW_VALIDATION
from emea.config.run_config import RunConfig
from emea.data.arrays import NO_MATCH, FloatArray, IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.split import MORE_VALIDATION, Split
from emea.data.statistics import statistics_table
from emea.run.observer import hard_mapping
from emea.run.outcome import Numbers, Outcome

logger = logging.getLogger(__name__)

FEW_LINKS = 10
"""Fewer training links than this are too few."""

CONFIDENT, CONFIDENT_SHARE = 0.5, 0.01
"""Probabilities are all low if a smaller share of the answers has at least this probability."""

LEAST_RECALL = 0.5
"""Candidates are too few if they hold the targets of a smaller share of the validation links."""

LEAST_SHARED, LEAST_TRIPLES = 0.05, 20
"""Graphs share too little structure if a smaller share of so many triples has a counterpart."""


def log_data(settings: RunConfig, pair: GraphPair, split: Split) -> list[str]:
    """Log the size of the data and the number of links; log and return warnings."""
    if pair.reading is not None:
        logger.info("Contents of the files:\n%s", statistics_table(pair))
    source = pair.source
    target = pair.target
    known = split.supervision
    summary = (
        f"{pair.name}: {source.num_entities:,} + {target.num_entities:,} entities, "
        f"{source.num_triples:,} + {target.num_triples:,} triples; links: "
        f"{len(known.train):,} train, {len(known.validation):,} validation, "
        f"{len(split.test):,} test"
    )
    if known.is_crossed:
        summary += (
            "; each encoder holds out another part of the training links for validation"
        )
    if split.num_missed:
        summary += (
            f", and {split.num_missed:,} test links whose source or target is not in its graph, "
            "which count as missed"
        )
    logger.info(summary)
    uses_literals = settings.name("literals") != "none"
    if not uses_literals and pair.source.labels and pair.target.labels:
        logger.info(
            "Both graphs have labels, but the run does not use them. literals=similar uses them."
        )
    if not len(split.test):
        logger.info(
            "There are no test links: the run predicts matches and evaluates nothing."
        )
    noticed = data_warnings(pair, split, uses_literals)
    num_candidates = settings.em.num_candidates
    if settings.uses("em") and num_candidates > target.num_entities:
        noticed.append(
            f"em.num_candidates={num_candidates} exceeds the number of target entities. All "
            f"{target.num_entities} entities are candidates."
        )
    for text in noticed:
        logger.warning("%s", text)
    return noticed


def judge(found: Outcome, pair: GraphPair) -> list[str]:
    """Log and return the warnings that follow from the result."""
    mapping = hard_mapping(found.beliefs)
    labelled = found.labels.cpu().numpy()
    mapping[labelled[:, 0]] = labelled[:, 1]
    probs = found.beliefs.probs.max(1).values.cpu().numpy()
    free = np.setdiff1d(np.flatnonzero(probs > 0), labelled[:, 0])
    noticed = [*found.warnings, *filter(None, [probability_warning(probs[free])])]
    share = shared_structure(pair.source, pair.target, mapping)
    if share is not None and share < LEAST_SHARED:
        noticed.append(
            f"The matched entities share little structure: {share:.1%} of the source triples "
            "between them have a counterpart. The graphs may be too different, or the answers are "
            "wrong."
        )
    for text in noticed:
        logger.warning("%s", text)
    return noticed


def data_warnings(pair: GraphPair, split: Split, uses_literals: bool) -> list[str]:
    """Return the warnings that are known before training.

    Args:
        pair: The graphs.
        split: The split of the links; its test links are not used.
        uses_literals: Whether literals are evidence, so that few links can be enough.
    """
    known = split.supervision
    found = []
    if (
        len(known.train) < FEW_LINKS and not uses_literals
    ):  # with literals, any number is enough
        settings = literal_settings(pair)
        advice = (
            f" Use names and values as evidence with {' '.join(settings)}."
            if settings
            else ""
        )
        found.append(
            f"{_only(len(known.train), 'training')} The first model will be weak, and "
            f"results will vary between splits. Add more links if you can.{advice}"
        )
    if 0 < len(known.validation) < FEW_VALIDATION:
        found.append(
            f"{_only(len(known.validation), 'validation')} Probabilities, thresholds "
            f"and validation scores are unreliable. {MORE_VALIDATION}"
        )
    links = np.concatenate([known.train, known.validation])
    mapping = np.full(pair.source.num_entities, NO_MATCH, dtype=np.int64)
    mapping[links[:, 0]] = links[:, 1]
    share = shared_structure(pair.source, pair.target, mapping)
    if share is not None and share < LEAST_SHARED:
        found.append(
            f"The graphs share little structure: {share:.1%} of the triples between labelled "
            "source entities also connect their counterparts. Results from structure will be poor."
        )
    return found


def _only(num_links: int, part: str) -> str:
    """Return a sentence that says how few links there are."""
    verb, links = ("is", "link") if num_links == 1 else ("are", "links")
    return f"There {verb} only {num_links} {part} {links}."


def literal_settings(pair: GraphPair) -> list[str]:
    """Return the settings that use literals, or names in IRIs, as evidence in addition to links.

    The list is empty if the graphs were not read from files, or have neither literals nor IRIs.
    """
    if pair.reading is None:
        return []
    if pair.reading.source.num_literals and pair.reading.target.num_literals:
        return ["literals=similar"]
    graphs = (pair.source, pair.target)
    if all(any("://" in name for name in graph.entity_names or ()) for graph in graphs):
        return ["literals=similar", "data.iri_names=true"]
    return []


def shared_structure(
    source: KnowledgeGraph, target: KnowledgeGraph, mapping: IntArray
) -> float | None:
    """Return the share of mapped source triples whose ends are also connected in the target graph.

    Relations and directions are ignored.

    Args:
        source: The source graph.
        target: The target graph.
        mapping: ``[num_source]`` target entities, or ``NO_MATCH``.

    Returns:
        The share; ``None`` if fewer than ``LEAST_TRIPLES`` triples have both ends mapped.
    """
    heads = mapping[source.triples[:, 0]]
    tails = mapping[source.triples[:, 2]]
    both = (heads != NO_MATCH) & (tails != NO_MATCH)
    if int(both.sum()) < LEAST_TRIPLES:
        return None
    connected = np.sort(
        _edges(target.triples[:, 0], target.triples[:, 2], target.num_entities)
    )
    # a search for sorted edges reads the other ones in order
    mapped = np.sort(_edges(heads[both], tails[both], target.num_entities))
    places = np.searchsorted(connected, mapped)
    inside = places < len(connected)
    found = connected[places[inside]] == mapped[inside]
    return int(found.sum()) / len(mapped)


def _edges(heads: IntArray, tails: IntArray, num_entities: int) -> IntArray:
    """Return one number for each undirected edge."""
    edges: IntArray = np.minimum(heads, tails) * num_entities + np.maximum(heads, tails)
    return edges


def score_warning(
    history: list[Numbers],
    answered: Numbers,
    test_hit: float,
    num_validation: int,
    num_test: int,
) -> str | None:
    """Return a warning if EM lowered Hit@1 on the validation links, or else on the test links.

    A loss counts if it exceeds the standard error of the difference between two independent
    samples of as many links. Smaller losses on few links are common in runs that EM improved.

    Args:
        history: One entry for each iteration.
        answered: The entry of the iteration that the run answers with.
        test_hit: Hit@1 of the answer on the test links; NaN without test links.
        num_validation: Number of validation links.
        num_test: Number of test links.
    """
    first = history[0]
    validation_before = (first.get("validation") or {}).get("hit@1")
    validation_after = _validation_hit(answered)
    if _is_loss(validation_before, validation_after, num_validation):
        best = max(history, key=lambda entry: _validation_hit(entry) or 0.0)
        advice = ""
        if (_validation_hit(best) or 0.0) > (validation_after or 0.0):
            advice = (
                f"em.keep=best answers with the best iteration: iteration {best['iteration']} has "
                f"{_validation_hit(best):.4f}. "
            )
        return _loss_text("validation", validation_before, validation_after, advice)
    test_before = (first.get("neural") or {}).get("hit@1")
    if _is_loss(test_before, test_hit, num_test):
        return _loss_text("test", test_before, test_hit, "")
    return None


def _loss_text(
    links: str, before: float | None, after: float | None, advice: str
) -> str:
    return (
        f"EM made the result worse: Hit@1 on the {links} links fell from {before:.4f} to "
        f"{after:.4f}. {advice}Try more iterations (em.iterations), a larger model.encoder.dim, or "
        "em=none, which keeps the model of the first training."
    )


def _is_loss(before: float | None, after: float | None, num_links: int) -> bool:
    """Return whether a share of links fell by more than the standard error of the difference."""
    if before is None or after is None:
        return False
    error = sqrt(
        max(0.0, before * (1 - before) + after * (1 - after)) / max(1, num_links)
    )
    return before - after > error  # false for NaN, the value without links


def _validation_hit(entry: Numbers) -> float | None:
    """Return Hit@1 of the validation links in the ranking that the run answers with."""
    found = (entry.get("validation_answer") or entry.get("validation") or {}).get(
        "hit@1"
    )
    return None if found is None else float(found)


def candidate_warning(candidates: IntArray, validation: IntArray) -> str | None:
    """Return a warning if too few validation links have their target among the candidates.

    Args:
        candidates: ``[num_source, k]`` target entities.
        validation: ``[num_links, 2]`` the validation links.
    """
    if not len(validation):
        return None
    recall = float((candidates[validation[:, 0]] == validation[:, 1:]).any(1).mean())
    if recall >= LEAST_RECALL:
        return None
    return (
        f"There are too few candidates: only {recall:.1%} of the validation links have their "
        f"target among the {candidates.shape[1]} candidates, and reasoning cannot find the others. "
        "Increase em.num_candidates, or add training links."
    )


def probability_warning(probs: FloatArray) -> str | None:
    """Return a warning if hardly any answer has a high probability.

    Args:
        probs: Probability of each answer for an unlabelled source entity.
    """
    if not len(probs) or float((probs >= CONFIDENT).mean()) >= CONFIDENT_SHARE:
        return None
    return (
        f"Probabilities are low: fewer than {CONFIDENT_SHARE:.0%} of the answers have a "
        f"probability of at least {CONFIDENT} (the highest is {float(probs.max()):.3f}). Check the "
        "answers before you use them. More training links or epochs may help."
    )
