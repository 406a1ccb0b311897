"""Writes the answer of a finished run with other settings, without training."""

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
from emea.config.composition import composed, option_names
from emea.config.settings.execution import ExportSettings
from emea.data.graph_pair import GraphPair
from emea.errors import ConfigError
from emea.record.checked_files import write_json
from emea.record.run_folder import finite
from emea.run.finished_run import FinishedRun
from emea.run.outcome import Numbers
from emea.run.parts import build_answering, decoder_name, export_settings, with_literals
from emea.run.schema_mapping import schema_mapping

NUMBERS_FILE = "prediction.json"


def predict(
    run: FinishedRun, folder: Path, settings: ExportSettings, decoding: str | None = None
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
        run = replace(run, config=with_decoding(run.config, decoding))
    decision = run_decision(run, settings)
    pair = with_literals(run.config, run.pair)
    schema = schema_mapping(pair, decision, settings.least_inclusion)
    files = write_answer(folder, run, pair, decision, schema, settings)
    judged = run.split.with_labels(run.labels.cpu().numpy())
    numbers = decision_numbers(decision, settings, judged)
    recorded = {
        "run": run.header.name,
        "run_id": run.header.run_id,
        "protocol": run.metrics["protocol"],
        "decoding": decoder_name(run.config),
        **numbers,
    }
    write_json(folder / NUMBERS_FILE, finite(recorded))
    return numbers, [*files, folder / NUMBERS_FILE]


def write_answer(
    folder: Path,
    run: FinishedRun,
    pair: GraphPair,
    decision: Decision,
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
    origin = origin_of(run.header, decoder_name(run.config), decision.threshold)
    files = write_alignment(folder, pair, origin, decision, settings)
    return files + write_formats(folder, SCHEMA_FORMATS, settings.formats, schema, origin)


def run_decision(run: FinishedRun, settings: ExportSettings) -> Decision:
    """Select the matches of a finished run.

    Raises:
        ConfigError: If the settings need validation links, and the run has none.
    """
    check_founded(settings, run.split)
    validation = run.split.supervision.validation
    return decide(
        build_answering(run.config),
        run.beliefs,
        run.labels,
        settings,
        validation,
        run.votes,
        run.pair.cardinality,
    )


def run_answers(run: FinishedRun) -> dict[int, tuple[int, float]]:
    """Return target and probability by source entity, as in the run's alignment."""
    return answered_pairs(run.decision or run_decision(run, export_settings(run.config)))


def run_schema(
    run: FinishedRun, settings: ExportSettings, decision: Decision | None = None
) -> Schema:
    """Return the mapping of relations and classes that the matches of a finished run imply."""
    found = decision or run_decision(run, settings)
    return schema_mapping(with_literals(run.config, run.pair), found, settings.least_inclusion)


def with_decoding(config: DictConfig, decoding: str) -> DictConfig:
    """Return a run's config with another decoding; its candidates stay the same.

    Raises:
        ConfigError: If there is no such decoding, or the run's method uses none.
    """
    options = option_names("decoding")
    if decoding not in options:
        raise ConfigError(f"decoding has no option {decoding}. Choose one of {', '.join(options)}.")
    if "decoding" not in config.method.uses:
        raise ConfigError(
            f"method={config.method.name} answers with its matching. Remove --decoding."
        )
    if config.decoding.name == decoding:  # keep the settings of the run
        return config
    changed = config.copy()
    changed.decoding = composed([f"decoding={decoding}"]).decoding
    return changed
