"""Writes the answer of a finished run with other settings, without training."""

import logging
from dataclasses import replace
from pathlib import Path

from omegaconf import DictConfig

from emea.answer.decision import (
    Decision,
    check_founded,
    decide,
    decision_numbers,
)
from emea.answer.exporting import (
    answered_pairs,
    origin_of,
    write_alignment,
    write_formats,
)
from emea.answer.schema import SCHEMA_FORMATS, Schema
from emea.answer.settings import ALIGNMENT_FILES, SCHEMA_FILES, ExportSettings
from emea.config.composition import composed, option_names
from emea.data.graph_pair import GraphPair
from emea.data.licenses import license_iri
from emea.errors import ConfigError, DataError
from emea.record.checked_files import read_checked_json, write_json
from emea.record.run_folder import NUMBERS_FILE, alignment_checksum, finite
from emea.run.building import (
    accepted_links,
    answerable,
    build_answering,
    decoder_name,
    with_literals,
)
from emea.run.decoy_run import least_share
from emea.run.finished_run import FinishedRun
from emea.run.outcome import Numbers
from emea.run.schema_mapping import schema_mapping

logger = logging.getLogger(__name__)


def predict(
    run: FinishedRun,
    folder: Path,
    settings: ExportSettings,
    decoding: str | None = None,
) -> tuple[Numbers, list[Path]]:
    """Write the answer of a finished run, without training.

    Args:
        run: The finished run.
        folder: The folder to write to.
        settings: The threshold or target precision, and the formats of the files.
        decoding: An option of ``conf/decoding`` that replaces the run's own.

    Returns:
        The numbers that a run has as ``export`` in its metrics, and the files.

    Raises:
        ConfigError: If the settings cannot be applied to the run.
    """
    if decoding is not None:
        config = with_decoding(run.config, decoding)
        run = replace(run, config=config, run_config=None)
    decision = run_decision(run, settings)
    pair = with_literals(run.settings, run.pair)
    schema = schema_mapping(pair, decision, settings.least_inclusion)
    files = write_answer(folder, run, pair, decision, schema=schema, settings=settings)
    judged = run.split.with_labels(run.labels.cpu().numpy())
    numbers = decision_numbers(decision, settings, judged)
    recorded = {
        "run": run.header.name,
        "run_id": run.header.run_id,
        "protocol": run.metrics["protocol"],
        "decoding": decoder_name(run.settings),
        **numbers,
        "files": sorted(path.name for path in files),
        **alignment_checksum(folder),
    }
    remove_others(folder, {path.name for path in files})
    write_json(folder / NUMBERS_FILE, finite(recorded))
    return numbers, [*files, folder / NUMBERS_FILE]


def remove_others(folder: Path, written: set[str]) -> None:
    """Remove the files of an earlier prediction, and name files that may belong to another answer.

    Matches of two thresholds would otherwise lie in one folder, each in another format.

    Args:
        folder: The folder of the prediction, with the record of an earlier one, if there was one.
        written: Names of the files of this prediction.
    """
    others = {
        name for name in ALIGNMENT_FILES | SCHEMA_FILES if (folder / name).is_file()
    }
    others -= written
    earlier = others & _recorded_files(folder)
    for name in earlier:
        (folder / name).unlink()
    if earlier:
        logger.warning(
            "Removed files of an earlier prediction: %s", ", ".join(sorted(earlier))
        )
    if unknown := others - earlier:
        logger.warning(
            "%s also contains %s, which this prediction did not write. Their matches may differ "
            "from those of alignment.tsv.",
            folder,
            ", ".join(sorted(unknown)),
        )


def _recorded_files(folder: Path) -> set[str]:
    """Return the files that the record of an earlier prediction names; empty without a record."""
    try:
        files = read_checked_json(folder / NUMBERS_FILE).get("files")
    except DataError:
        return set()
    return (
        {name for name in files if isinstance(name, str)}
        if isinstance(files, list)
        else set()
    )


def write_answer(
    folder: Path,
    run: FinishedRun,
    pair: GraphPair,
    decision: Decision,
    *,
    schema: Schema,
    settings: ExportSettings,
) -> list[Path]:
    """Write the alignment and the mapping of relations and classes, and return the files.

    Args:
        folder: The folder to write to.
        run: The finished run.
        pair: The graphs, with the literals that the run used as evidence.
        decision: The selected matches.
        schema: The mapping of relations and classes.
        settings: Formats and number of candidates.
    """
    origin = origin_of(
        run.header,
        decoder_name(run.settings),
        decision.threshold,
        license_iri(settings.license),
    )
    files = write_alignment(
        folder, pair, origin, decision, settings=settings, decisions=run.decisions
    )
    return files + write_formats(
        folder, SCHEMA_FORMATS, settings.formats, schema, origin
    )


def run_decision(run: FinishedRun, settings: ExportSettings) -> Decision:
    """Select the matches of a finished run.

    Raises:
        ConfigError: If the settings need validation links, and the run has none.
    """
    is_estimated = "decoys" in run.metrics
    check_founded(settings, run.split, is_estimated)
    validation = run.split.supervision.validation
    return decide(
        build_answering(run.settings),
        answerable(run.settings, run.beliefs, run.split),
        accepted_links(run.settings, run.labels, run.split),
        settings,
        validation,
        votes=run.votes,
        cardinality=run.pair.cardinality,
        rejected=run.pair.rejected,
        is_estimated=is_estimated,
        least_share=least_share(
            run.metrics, run.split.supervision, run.pair.source.num_entities
        ),
    )


def run_answers(run: FinishedRun) -> dict[int, tuple[int, float]]:
    """Return target and probability by source entity, as in the run's alignment."""
    return answered_pairs(run.decision or run_decision(run, run.settings.own.export))


def run_schema(
    run: FinishedRun, settings: ExportSettings, decision: Decision | None = None
) -> Schema:
    """Return the mapping of relations and classes that the matches of a finished run imply."""
    found = decision or run_decision(run, settings)
    return schema_mapping(
        with_literals(run.settings, run.pair), found, settings.least_inclusion
    )


def with_decoding(config: DictConfig, decoding: str) -> DictConfig:
    """Return a run's config with another decoding; its candidates stay the same.

    Raises:
        ConfigError: If there is no such decoding, or the run's method uses none.
    """
    options = option_names("decoding")
    if decoding not in options:
        raise ConfigError(
            f"decoding has no option {decoding}. Choose one of {', '.join(options)}."
        )
    if "decoding" not in config.method.uses:
        raise ConfigError(
            f"method={config.method.name} answers with its matching. Remove --decoding."
        )
    if config.decoding.name == decoding:  # keep the settings of the run
        return config
    changed = config.copy()
    changed.decoding = composed([f"decoding={decoding}"]).decoding
    return changed
