"""Who a run is: its name, parameters and tags."""

import copy
import os
import uuid
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from emea.data.graph_pair import GraphPair
from emea.record.fingerprint import fingerprint
from emea.record.provenance import provenance
from emea.record.run_record import FINGERPRINT_TAG, SWEEP_TAG, RunHeader, flat_params
from emea.record.store_uri import STORE_VARIABLE, shown_uri

SWEEPS = "multirun"
"""The folder in which Hydra puts sweeps by day and time; the time alone would not be unique."""


def make_header(
    config: DictConfig, pair: GraphPair, uses_test_links: bool, sweep: str | None = None
) -> RunHeader:
    """The header of a run about to start; ``sweep`` names the sweep it belongs to."""
    tags = {
        **provenance(),
        "protocol": config.protocol.name,
        "test_links_in_training": str(uses_test_links).lower(),
        "data": pair.name,
        "data_checksum": pair.checksum(),
        FINGERPRINT_TAG: fingerprint(config, pair),
    }
    if sweep is not None:
        tags[SWEEP_TAG] = sweep
    return RunHeader(
        run_id=uuid.uuid4().hex,
        name=run_name(config, pair.name),
        experiment=config.study,
        params=flat_params(OmegaConf.to_container(config, resolve=True)),
        tags=tags,
    )


def sweep_name(folder: Path) -> str:
    """What the runs of a sweep are grouped by: its folder, such as ``2022-12-07/09-00-00``.

    Args:
        folder: The folder of all the sweep's runs.
    """
    parts = folder.parts
    below = parts[parts.index(SWEEPS) + 1 :] if SWEEPS in parts else ()
    return "/".join(below) or folder.name


def without_secrets(config: DictConfig) -> DictConfig:
    """The config as it may be written down: no user and password in the store's address."""
    uri = OmegaConf.select(config, "tracking.uri")
    if not uri:
        return config
    shown = copy.deepcopy(config)
    shown.tracking.uri = shown_uri(uri)
    return shown


def with_secrets(config: DictConfig) -> DictConfig:
    """A config that was written down, with the user and password that the environment has."""
    known = os.environ.get(STORE_VARIABLE)
    if known and OmegaConf.select(config, "tracking.uri") == shown_uri(known):
        config.tracking.uri = known
    return config


def method_name(config: DictConfig) -> str:
    """What produced the result: a baseline, EM around a neural model, or only that model."""
    if "em" not in config.method.uses:
        return str(config.method.name)
    return "emea" if config.em.iterations else "neural"


def run_name(config: DictConfig, data: str) -> str:
    """A name that reads, such as ``emea-rrea-dbp15k_zh-1%-strict-s0``."""
    by_ratio = config.split.name == "random"
    share = f"{100 * config.ratio.value:.4g}%" if by_ratio else config.split.name
    used = {group: config[group].name for group in config.method.uses}
    model = [used["model"]] if "model" in used else []
    training = [] if used.get("training", "sup") == "sup" else [used["training"]]
    em = [] if used.get("em", "none") in ("paper", "none") else [used["em"]]
    parts = [method_name(config), *em, *model, *training, data, share, config.protocol.name]
    seed = [f"seed{config.seed}"] if config.seed else []
    return "-".join([*parts, f"s{config.split_seed}", *seed])
