"""Writes a decision to export files."""

from datetime import UTC, datetime
from math import inf
from pathlib import Path

import numpy as np

from emea.answer.alignment import Alignment, FloatArray, Origin
from emea.answer.decision import Decision, ExportSettings
from emea.answer.formats import DIGITS, write_formats
from emea.data.arrays import NO_MATCH, IntArray
from emea.data.graph_pair import GraphPair
from emea.matching.beliefs import Beliefs
from emea.record.run_record import RunHeader


def write_alignment(
    folder: Path,
    pair: GraphPair,
    header: RunHeader,
    decoder: str,
    decision: Decision,
    settings: ExportSettings,
) -> list[Path]:
    """Write an alignment in all requested formats.

    Args:
        folder: Output folder.
        pair: The graphs, with the names of the entities.
        header: Header of the run.
        decoder: Name of the decoder.
        decision: The selected matches.
        settings: Formats and number of candidates.

    Returns:
        The written files.
    """
    probs = decision.answer.probs.max(1).values.cpu().numpy()
    targets = decision.answer.best_targets().cpu().numpy()
    is_given = np.zeros(len(probs), dtype=bool)
    is_given[decision.labels[:, 0].cpu().numpy()] = True
    candidates, candidate_probs = top_candidates(decision.beliefs, settings.top_k)
    alignment = Alignment(
        pair=pair,
        origin=origin_of(header, decoder, decision.threshold),
        targets=np.where(probs > 0, targets, NO_MATCH),
        probs=probs,
        is_given=is_given,
        candidates=candidates,
        candidate_probs=candidate_probs,
    )
    return write_formats(folder, alignment, settings.formats)


def answered_pairs(decision: Decision) -> dict[int, tuple[int, float]]:
    """Return target and probability by source entity, rounded as in ``alignment.tsv``."""
    probs = decision.answer.probs.max(1).values.tolist()
    targets = decision.answer.best_targets().tolist()
    pairs = enumerate(zip(targets, probs, strict=True))
    return {source: (target, round(prob, DIGITS)) for source, (target, prob) in pairs if prob > 0}


def top_candidates(beliefs: Beliefs, num: int) -> tuple[IntArray, FloatArray]:
    """Return the most probable targets, ``[num_source, num]``, best first, with probabilities."""
    targets, probs = beliefs.targets.cpu().numpy(), beliefs.probs.cpu().numpy()
    # A stable sort keeps the neural order for ties, as in the answer.
    order = np.argsort(-probs, axis=1, kind="stable")[:, :num]
    return np.take_along_axis(targets, order, 1), np.take_along_axis(probs, order, 1)


def origin_of(header: RunHeader, decoder: str, threshold: float) -> Origin:
    """Return the provenance of an alignment.

    Args:
        header: Header of the run.
        decoder: Name of the decoder.
        threshold: Minimum probability of a match.
    """
    version, commit = (header.tags.get(name, "unknown") for name in ("emea_version", "commit"))
    least = "only training links" if threshold == inf else f"threshold={threshold!r}"
    return Origin(
        run_id=header.run_id,
        run_name=header.name,
        date=datetime.fromtimestamp(header.start_time / 1000, UTC).date().isoformat(),
        tool_version=version if commit == "unknown" else f"{version}+{commit[:10]}",
        settings=f"decoding={decoder}, {least}",
    )
