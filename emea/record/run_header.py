"""The header of a run: its name, parameters and tags."""

import copy
import getpass
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from emea.data.graph_pair import GraphPair
from emea.errors import ConfigError
from emea.record.fingerprint import fingerprint
from emea.record.provenance import provenance
from emea.record.run_name import run_name
from emea.record.run_record import (
    COMMAND_TAG,
    FINGERPRINT_TAG,
    SWEEP_TAG,
    USER_TAG,
    RunHeader,
    flat_params,
)
from emea.record.store_uri import DEFAULT_ARTIFACT_ROOT, STORE_VARIABLE, is_local, shown_uri

SWEEPS = "multirun"
"""The folder in which Hydra puts sweeps by day and time; a time is not unique without its day."""


@dataclass(frozen=True)
class Launch:
    """Holds how a run was launched.

    Args:
        command: The command that runs exactly this run; empty for the Python API.
        sweep: Name of the sweep that the run belongs to.
        swept: Values of the settings that differ within the sweep, by key.
        read_s: Seconds that the command spent on reading the graphs.
    """

    command: str = ""
    sweep: str | None = None
    swept: Mapping[str, str] = field(default_factory=dict)
    read_s: float = 0.0


def make_header(
    config: DictConfig, pair: GraphPair, uses_test_links: bool, launch: Launch | None = None
) -> RunHeader:
    """Return the header of a run that is about to start."""
    launch = launch or Launch()
    tags = {
        **provenance(),
        "protocol": config.protocol.name,
        "test_links_in_training": str(uses_test_links).lower(),
        "data": pair.name,
        "data_checksum": pair.checksum(),
        FINGERPRINT_TAG: fingerprint(config, pair),
        USER_TAG: "unknown",
    }
    with suppress(KeyError, OSError):  # a container may run as a user without a name
        tags[USER_TAG] = getpass.getuser()
    if launch.command:
        tags[COMMAND_TAG] = launch.command
    if launch.sweep is not None:
        tags[SWEEP_TAG] = launch.sweep
    params = flat_params(OmegaConf.to_container(config, resolve=True))
    return RunHeader(
        run_id=uuid.uuid4().hex,
        name=run_name({**params, "data.name": pair.name}, launch.swept),
        experiment=config.study,
        params=params,
        tags=tags,
    )


def sweep_name(folder: Path) -> str:
    """Return the name that groups the runs of a sweep: its folder, ``2022-12-07/09-00-00``.

    Args:
        folder: The folder of all the sweep's runs.
    """
    parts = folder.parts
    below = parts[parts.index(SWEEPS) + 1 :] if SWEEPS in parts else ()
    return "/".join(below) or folder.name


def without_secrets(config: DictConfig) -> DictConfig:
    """Return the config without user and password in the store's address, for writing to files."""
    uri = OmegaConf.select(config, "tracking.uri")
    if not uri:
        return config
    shown = copy.deepcopy(config)
    shown.tracking.uri = shown_uri(uri)
    return shown


def host_of(config: DictConfig) -> str | None:
    """Return the address of the tracking store without its login, if it is on another machine."""
    uri = OmegaConf.select(config, "tracking.uri")
    return shown_uri(uri) if uri and not is_local(uri) else None


def with_own_store(config: DictConfig) -> DictConfig:
    """Return a stored config, whose store is that of the environment if only the login differs.

    Raises:
        ConfigError: If it names a server that the environment does not name: a folder must not
            decide which host is contacted.
    """
    known, host = os.environ.get(STORE_VARIABLE, ""), host_of(config)
    if host is not None and host != shown_uri(known):
        raise ConfigError(
            f"The run was recorded at {host}, and only its folder says so. To contact that server, "
            f"repeat the command with {STORE_VARIABLE}={host} in front of it."
        )
    if host is not None:
        config.tracking.uri = f"${{oc.env:{STORE_VARIABLE}}}"
    if not is_local(OmegaConf.select(config, "tracking.artifact_root") or ""):
        config.tracking.artifact_root = DEFAULT_ARTIFACT_ROOT
    return config


def method_name(config: DictConfig) -> str:
    """Return the method: the name of a baseline, ``emea`` for EM, or ``neural`` without EM."""
    if "em" not in config.method.uses:
        return str(config.method.name)
    return "emea" if config.em.iterations else "neural"
