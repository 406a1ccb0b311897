"""The header of a run: its name, parameters and tags. Names start with what a sweep varies."""

import copy
import getpass
import os
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from emea.data.graph_pair import GraphPair
from emea.data.split import Split
from emea.errors import ConfigError
from emea.record.data_parts import data_parts
from emea.record.fingerprint import fingerprint
from emea.record.provenance import provenance
from emea.record.run_record import (
    COMMAND_TAG,
    FINGERPRINT_TAG,
    SWEEP_TAG,
    USER_TAG,
    ParamValue,
    RunHeader,
    flat_params,
)
from emea.record.settings import DEFAULT_ARTIFACT_ROOT, MlflowSettings
from emea.record.store_uri import STORE_VARIABLE, is_local, shown_uri

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
        tags: Further tags; they replace those of the run.
        is_checked: Whether the command has checked the configuration.
    """

    command: str = ""
    sweep: str | None = None
    swept: Mapping[str, str] = field(default_factory=dict)
    read_s: float = 0.0
    tags: Mapping[str, str] = field(default_factory=dict)
    is_checked: bool = False


def make_header(
    config: DictConfig,
    pair: GraphPair,
    split: Split,
    uses_test_links: bool,
    launch: Launch | None = None,
) -> RunHeader:
    """Return the header of a run that is about to start.

    Args:
        config: The configuration of the run, without secrets.
        pair: The graphs and all their links.
        split: The split of the links. The header only contains the number and the digest of its
            test links.
        uses_test_links: Whether the protocol shows test links to the method.
        launch: How the run was launched.
    """
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
        tags={**tags, **launch.tags},
        data=data_parts(config, pair, split),
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

    The config of an earlier version gets the tracking settings that were added since.

    Raises:
        ConfigError: If it names a server that the environment does not name: a folder must not
            decide which host is contacted.
    """
    known = os.environ.get(STORE_VARIABLE, "")
    host = host_of(config)
    if host is not None and host != shown_uri(known):
        raise ConfigError(
            f"The run was recorded at {host}, and only its folder says so. To contact that server, "
            f"repeat the command with {STORE_VARIABLE}={host} in front of it."
        )
    if host is not None:
        config.tracking.uri = f"${{oc.env:{STORE_VARIABLE}}}"
    if not is_local(OmegaConf.select(config, "tracking.artifact_root") or ""):
        config.tracking.artifact_root = DEFAULT_ARTIFACT_ROOT
    uses_store = OmegaConf.select(config, "tracking.uri") is not None
    if uses_store and "patience_seconds" not in config.tracking:
        config.tracking.patience_seconds = MlflowSettings.patience_seconds
    return config


Params = Mapping[str, ParamValue]

SHORT = {"em.num_candidates": "K"}
"""Names that are shorter than the last part of a key."""

USUAL = {"training": "sup", "em": "paper", "rule": "paris", "protocol": "strict"}
"""Options that a name only mentions if they were swept."""

PLACES = {"data": -3, "ratio": -2, "split": -1, "split_seed": 1, "seed": 2}
"""Settings at the beginning and at the end of a name; others keep their order between them."""


def run_name(params: Params, swept: Mapping[str, str] | None = None) -> str:
    """Return the name of a run, such as ``zh 5% K=5 avoid_conflict rrea s0``.

    Settings that were swept come first, so that a truncated column still shows what differs. Model,
    method and unusual options follow.

    Args:
        params: The flat parameters of the run.
        swept: Values of the settings that differ within its sweep, by key.
    """
    swept = {_group_of(key): value for key, value in (swept or {}).items()}
    described = ["data", "ratio", *_described(params), "split_seed"]
    described += ["seed"] if params.get("seed") else []
    constant = (key for key in described if key not in swept)
    texts = [
        _text(key, params, swept) for key in (*_ordered(swept), *_ordered(constant))
    ]
    return " ".join(dict.fromkeys(filter(None, texts)))


def _described(params: Params) -> list[str]:
    """Return the groups that describe the method of a run, without those that it does not use."""
    method = params.get("method.name")
    uses = params.get("method.uses")
    groups = [] if method in (None, "emea") else ["method"]
    for group in ("model", "training", "em", "rule", "protocol"):
        option = params.get(f"{group}.name")
        is_used = uses is None or group == "protocol" or f"'{group}'" in str(uses)
        if option is not None and is_used and option != USUAL.get(group):
            groups.append(group)
    # without EM there is nothing to reason with
    return [
        group for group in groups if group != "rule" or params.get("em.iterations") != 0
    ]


def _ordered(keys: Iterable[str]) -> list[str]:
    return sorted(keys, key=lambda key: PLACES.get(key, 0))


def _group_of(key: str) -> str:
    """Return the group for ``GROUP.name`` and ``ratio.value``, and any other key unchanged."""
    group, _, rest = key.partition(".")
    return group if rest == "name" or key == "ratio.value" else key


def _text(key: str, params: Params, swept: Mapping[str, str]) -> str:
    """Return the part of a run's name that describes one setting."""
    value = params.get(key, params.get(f"{key}.name", swept.get(key, "")))
    if key == "data":
        return str(value).removeprefix("dbp15k_")
    if key == "ratio":
        return _share(params)
    if key == "split":
        return (
            ""
            if params.get("split.name") == "random" and "ratio" in swept
            else _share(params)
        )
    if key in ("split_seed", "seed"):
        return f"{'s' if key == 'split_seed' else 'seed'}{value}"
    if "." not in key:
        return f"no {'EM' if key == 'em' else key}" if value == "none" else str(value)
    last = key.rpartition(".")[2]
    is_unique = sum(other.rpartition(".")[2] == last for other in swept) < 2
    return f"{SHORT.get(key, last if is_unique else key)}={value}"


def _share(params: Params) -> str:
    """Return the share of training links of a random split, or the name of another split."""
    ratio = params.get("ratio.value")
    if params.get("split.name", "random") != "random" or not isinstance(
        ratio, int | float
    ):
        return str(params.get("split.name", ""))
    return f"{100 * ratio:.4g}%"
