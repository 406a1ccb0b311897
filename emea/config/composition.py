"""Composes configs from the options in ``conf/`` and in folders of the user."""

from collections.abc import Sequence
from pathlib import Path

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from emea.config.settings.execution import RunSettings
from emea.config.settings.groups import GROUPS
from emea.config.settings.setting import defaults_of
from emea.errors import ConfigError

PACKAGE = Path(__file__).resolve().parents[1]
SHIPPED = PACKAGE / "conf"
CONF = SHIPPED if SHIPPED.is_dir() else PACKAGE.parent / "conf"
"""It is inside an installed package, and next to the package in a checkout."""

PRESETS = ("experiment", "schedule", "variant")
"""Groups that set values of other groups; they are optional."""

_further: list[Path] = []


def composed(overrides: Sequence[str]) -> DictConfig:
    """Compose the config of these overrides, typed as on the command line.

    Raises:
        ConfigError: If it cannot be composed. The message names the key.
    """
    try:
        return compose_config(quote_numeric_choices(overrides))
    except (HydraException, OmegaConfBaseException, ValueError, RecursionError) as error:
        raise ConfigError(error_text(error)) from error


def compose_config(overrides: Sequence[str], with_hydra: bool = False) -> DictConfig:
    """Compose a config from all folders that are searched."""
    register_schema()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", [*overrides, *search_path()], return_hydra_config=with_hydra)


def search_path() -> list[str]:
    """Return the override that lets Hydra search the user's folders; empty without any.

    Hydra's own flag ``--config-dir`` takes a single folder.
    """
    paths = ",".join(f"'file://{folder}'" for folder in _further)
    return [f"hydra.searchpath=[{paths}]"] if _further else []


def register_schema() -> None:
    """Store the defaults of all settings in Hydra's ConfigStore, once in each process.

    They are stored as plain values: `emea.config.checks` checks them, in clearer words than
    OmegaConf, and users can add settings for their own classes.
    """
    store = ConfigStore.instance()
    if "schema.yaml" in store.repo:
        return
    store.store(name="schema", node=defaults_of(RunSettings))
    for group, declared in GROUPS.items():
        for name, schema in declared.schemas.items():
            store.store(name=f"schema_{name}", group=group, node=defaults_of(schema))


def quote_numeric_choices(arguments: Sequence[str]) -> list[str]:
    """Quote numbers that are options of ``ratio``: Hydra does not accept a float as an option.

    ``ratio=0.01,0.30`` becomes ``ratio='0.01','0.3'``. Other arguments stay unchanged.
    """
    return [_quoted(argument) for argument in arguments]


def _quoted(argument: str) -> str:
    key, equals, value = argument.partition("=")
    if key not in ("ratio", "+ratio", "++ratio") or not equals:
        return argument
    return f"{key}={','.join(map(_quoted_number, value.split(',')))}"


def _quoted_number(text: str) -> str:
    try:
        return f"'{float(text):g}'"
    except ValueError:
        return text


def error_text(error: Exception) -> str:
    """Return the text of an error of Hydra or OmegaConf, with the key if the error has one."""
    cause = error.__cause__ or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    key = next((line.split(": ", 1)[1] for line in lines if line.startswith("full_key: ")), "")
    return f"{key}: {lines[0]}" if key else first_line(error)


def first_line(error: Exception) -> str:
    """Return the first line of an error; Hydra adds advice on syntax."""
    return next((line for line in str(error).splitlines() if line.strip()), repr(error))


def search_also(folders: Sequence[Path]) -> None:
    """Also search these folders for options, instead of folders from an earlier call.

    Raises:
        ConfigError: If one of them is not a folder.
    """
    for folder in folders:
        if not folder.is_dir():
            raise ConfigError(
                f"{folder} is not a folder. Check the path of the folder with your own options."
            )
    _further[:] = [folder.resolve() for folder in folders]


def required_groups() -> list[str]:
    """Return the groups from which each run has an option."""
    return [name for name in group_names() if name not in PRESETS]


def group_names() -> list[str]:
    """Return the groups of ``conf/`` without those of Hydra."""
    return sorted(path.name for path in CONF.iterdir() if path.is_dir() and path.name != "hydra")


def option_names(group: str) -> list[str]:
    """Return the options of a group in all folders; options in subfolders have their path."""
    folders = [folder / group for folder in (CONF, *_further)]
    return sorted(
        {
            file.relative_to(folder).as_posix().removesuffix(".yaml")
            for folder in folders
            for file in folder.rglob("*.yaml")
        }
    )
