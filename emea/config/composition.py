"""Composes configs from the options in ``conf/`` and in folders of the user."""

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra._internal.core_plugins.file_config_source import FileConfigSource
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException
from hydra.plugins.config_source import ConfigResult
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from emea.config.groups import GROUPS
from emea.errors import ConfigError
from emea.run.settings import RunSettings
from emea.runtime.regular_file import open_regular
from emea.setting import plain

PACKAGE = Path(__file__).resolve().parents[1]
SHIPPED = PACKAGE / "conf"
CONF = SHIPPED if SHIPPED.is_dir() else PACKAGE.parent / "conf"
"""It is inside an installed package, and next to the package in a checkout."""

PRESETS = ("experiment", "schedule", "variant")
"""Groups that set values of other groups; they are optional."""

_further: list[str] = []
"""Addresses of the user's folders with options."""

MOST_BYTES, MOST_DEPTH = 1 << 20, 100
"""Maximum size of a file of options, and maximum nesting of its YAML."""

ONLY_TYPED = re.compile(r"\b(hydra|trust)\b")
"""What only the command line sets: Hydra runs what its settings name, such as callbacks, loggers
and launchers, and a file must not trust itself."""


class CheckedSource(FileConfigSource):
    """A folder of the user with options. Hydra gets its files after they were checked.

    Args:
        provider: What added the folder to the search path.
        path: Its address, which ends with the modules that the user trusts. Jobs in other processes
            only get the address.
    """

    def __init__(self, provider: str, path: str) -> None:
        folder, _, trusted = path.rpartition("?")
        super().__init__(provider, folder)
        self._modules = tuple(f"{module}." for module in trusted.split(",") if module)

    @staticmethod
    def scheme() -> str:
        """Return the beginning of the address."""
        return "checked"

    def load_config(self, config_path: str) -> ConfigResult:
        """Read a file, unless it sets what only the command line sets.

        Raises:
            ConfigError: If it does, or if its YAML cannot be used.
        """
        path = Path(self.path, self._normalize_file_name(config_path))
        options = read_options(path)
        found = super().load_config(config_path)
        defaults = options.get("defaults")
        of_hydra = options.get("hydra")
        sweeper = of_hydra.get("sweeper") if isinstance(of_hydra, dict) else None
        swept = sweeper.pop("params", None) if isinstance(sweeper, dict) else None
        if not isinstance(swept or {}, dict):
            raise ConfigError(
                f"{path}: hydra.sweeper.params must contain settings (key: value)."
            )
        places = (config_path, found.header.get("package"), defaults, list(swept or ()))
        keys = [
            match[0] for place in places if (match := ONLY_TYPED.search(str(place)))
        ]
        keys += self._refused(
            {key: options[key] for key in options if ONLY_TYPED.fullmatch(key)}
        )
        if keys:
            raise ConfigError(
                f"{path} sets {keys[0]}, which only the command line can set. Remove it from the "
                "file. Callbacks may be classes of modules in trust."
            )
        if isinstance(defaults, list):
            _check_defaults(path, [one for one in defaults if isinstance(one, dict)])
        return found

    def _refused(
        self, node: Any, key: str = "", is_trusted: bool = False
    ) -> Iterator[str]:
        """Yield the keys of values that do not belong to a trusted class."""
        if isinstance(node, dict):
            if "_target_" in node:
                is_trusted = str(node["_target_"]).startswith(self._modules)
            for name, value in node.items():
                yield from self._refused(value, f"{key}.{name}".lstrip("."), is_trusted)
        elif isinstance(node, list):
            for value in node:
                yield from self._refused(value, key, is_trusted)
        elif not is_trusted:
            yield key


def _check_defaults(path: Path, defaults: Sequence[dict[str, Any]]) -> None:
    """Raise an error if a file chooses an option that does not exist."""
    for key, name in (item for one in defaults for item in one.items()):
        group = str(key).removeprefix("override ").partition("@")[0]
        is_known = not group.startswith("/") or group[1:] not in group_names()
        is_known = is_known or not isinstance(name, str) or "${" in name
        if not is_known and name not in option_names(group[1:]):
            lines = path.read_text(encoding="utf-8").splitlines()
            number = next((at for at, line in enumerate(lines, 1) if name in line), 1)
            raise ConfigError(
                f"{path}, line {number}: {group[1:]} has no option {name}."
            )


def read_options(path: Path) -> dict[str, Any]:
    """Return the content of a file of options, without resolving interpolations.

    Raises:
        ConfigError: If it cannot be read, or contains no settings.
    """
    try:
        with open_regular(path) as file:
            text = file.read(MOST_BYTES + 1)
        if len(text) > MOST_BYTES:
            raise ConfigError(
                f"{path} is larger than 1 MiB, which is too large for options."
            )
        found = parsed_yaml(path, text.decode())
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}.") from error
    if not isinstance(found, DictConfig):
        raise ConfigError(f"{path} must contain settings (key: value).")
    settings = OmegaConf.to_container(found)
    return {str(key): value for key, value in settings.items()}  # type: ignore[union-attr]


def parsed_yaml(path: Path, text: str) -> DictConfig | ListConfig:
    """Parse YAML that may come from a stranger.

    Raises:
        ConfigError: If it cannot be read, or has aliases, a few of which expand to any size. The
            message names the file and the line.
    """
    try:
        depth = 0
        for event in yaml.parse(text):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            problem = "is nested too deeply" if depth > MOST_DEPTH else ""
            if isinstance(event, yaml.AliasEvent):
                problem = "has aliases, which are not supported; write the value again"
            if problem:
                place = f"{path}, line {event.start_mark.line + 1}"
                raise ConfigError(f"{place}: the YAML {problem}.")
        return OmegaConf.load(io.StringIO(text))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}, line {mark.line + 1}" if mark is not None else str(path)
        problem = getattr(error, "problem", None) or first_line(error)
        raise ConfigError(f"{place}: the YAML cannot be read: {problem}.") from error
    except (OmegaConfBaseException, OSError, ValueError, ArithmeticError) as error:
        raise ConfigError(
            f"{path}: the YAML cannot be used: {first_line(error)}."
        ) from error


def composed(overrides: Sequence[str], with_hydra: bool = False) -> DictConfig:
    """Compose the config of these overrides, typed as on the command line.

    Raises:
        ConfigError: If it cannot be composed. The message names the key.
    """
    register_schema()
    chosen = [*quote_numeric_choices(overrides), *search_path()]
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            return compose("config", chosen, return_hydra_config=with_hydra)
    except (
        HydraException,
        OmegaConfBaseException,
        ValueError,
        RecursionError,
    ) as error:
        raise ConfigError(error_text(error)) from error


def composed_choices(choices: tuple[str, ...]) -> DictConfig:
    """Return the config of some choices of options; composing takes a quarter of a second.

    Callers must copy it before they change it. Options of the package do not change while the
    process runs, so their configs are kept; the files of a user may change between two calls.
    """
    return composed(choices) if _further else _of_package_options(choices)


@lru_cache(maxsize=32)
def _of_package_options(choices: tuple[str, ...]) -> DictConfig:
    return composed(choices)


def search_path() -> list[str]:
    """Return the override that lets Hydra search the user's folders; empty without any.

    Hydra's own flag ``--config-dir`` takes a single folder.
    """
    paths = ",".join(f"'{address}'" for address in _further)
    return [f"hydra.searchpath=[{paths}]"] if _further else []


def register_schema() -> None:
    """Store the defaults of all settings in Hydra's ConfigStore, once in each process.

    They are stored as plain values: `emea.config.checks` checks them, in clearer words than
    OmegaConf, and users can add settings for their own classes.
    """
    SourcesRegistry.instance().register(CheckedSource)
    store = ConfigStore.instance()
    if "schema.yaml" in store.repo:
        return
    store.store(name="schema", node=plain(RunSettings()))
    for group, declared in GROUPS.items():
        for name, schema in declared.schemas.items():
            store.store(name=f"schema_{name}", group=group, node=plain(schema()))


def quote_numeric_choices(arguments: Sequence[str]) -> list[str]:
    """Quote numbers that are options of ``ratio``: Hydra does not accept a float as an option.

    ``ratio=0.01,0.30`` becomes ``ratio='0.01','0.3'``. Other arguments stay unchanged.
    """
    found = []
    for argument in arguments:
        key, _, value = argument.partition("=")
        names = value.split(",") if key in ("ratio", "+ratio", "++ratio") else []
        for index, name in enumerate(names):
            with suppress(ValueError):
                names[index] = f"'{float(name):g}'"
        found.append(f"{key}={','.join(names)}" if value and names else argument)
    return found


def error_text(error: Exception) -> str:
    """Return the text of an error of Hydra or OmegaConf, with the key if the error has one."""
    cause = error.__cause__ or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    key = next(
        (line.split(": ", 1)[1] for line in lines if line.startswith("full_key: ")), ""
    )
    if key and lines[0] == "Cannot merge DictConfig with ListConfig":
        return f"{key} must be a group of settings, got a list"
    text = f"{key}: {lines[0]}" if key else first_line(error)
    is_plugin = re.search("Could not find 'hydra/(launcher|sweeper)/", text)
    return f"{text}. Install it: docs/sweeps.md lists the extras" if is_plugin else text


def first_line(error: Exception) -> str:
    """Return the first line of an error; Hydra adds advice on syntax."""
    return next((line for line in str(error).splitlines() if line.strip()), repr(error))


def search_also(folders: Sequence[Path], trust: Sequence[str] = ()) -> None:
    """Also search these folders for options, instead of folders from an earlier call.

    Args:
        folders: The folders.
        trust: Modules whose classes their files may name as Hydra's callbacks.

    Raises:
        ConfigError: If one of them is not a folder.
    """
    for folder in folders:
        if not folder.is_dir():
            raise ConfigError(
                f"{folder} is not a folder. Check the path of the folder with your own options."
            )
    trusted = ",".join(trust)
    _further[:] = [
        f"{CheckedSource.scheme()}://{one.resolve()}?{trusted}" for one in folders
    ]


def required_groups() -> list[str]:
    """Return the groups from which each run has an option."""
    return [name for name in group_names() if name not in PRESETS]


def group_names() -> list[str]:
    """Return the groups of ``conf/`` without those of Hydra."""
    return sorted(
        path.name for path in CONF.iterdir() if path.is_dir() and path.name != "hydra"
    )


def option_names(group: str) -> list[str]:
    """Return the options of a group in all folders; options in subfolders have their path."""
    further = [address.partition("://")[2].rpartition("?")[0] for address in _further]
    folders = [Path(folder, group) for folder in (str(CONF), *further)]
    return sorted(
        {
            file.relative_to(folder).as_posix().removesuffix(".yaml")
            for folder in folders
            for file in folder.rglob("*.yaml")
        }
    )
