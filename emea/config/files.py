"""The folders of the configuration, their options, and the composition of a config."""

from collections.abc import Sequence
from pathlib import Path

from hydra import compose, initialize_config_dir
from omegaconf import DictConfig

from emea.config.schema import register_schema
from emea.errors import ConfigError


def error_text(error: Exception) -> str:
    """Return the text of an error of Hydra or OmegaConf, with the key if the error has one."""
    cause = error.__cause__ or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    key = next((line.split(": ", 1)[1] for line in lines if line.startswith("full_key: ")), "")
    return f"{key}: {lines[0]}" if key else first_line(error)


def first_line(error: Exception) -> str:
    """Return the first line of an error; Hydra adds advice on syntax."""
    return next((line for line in str(error).splitlines() if line.strip()), repr(error))


PACKAGE = Path(__file__).resolve().parents[1]
SHIPPED = PACKAGE / "conf"
CONF = SHIPPED if SHIPPED.is_dir() else PACKAGE.parent / "conf"
"""It is inside an installed package, and next to the package in a checkout."""

PRESETS = ("experiment", "schedule", "variant")
"""Groups that set values of other groups; they are optional."""

OPTIONAL = ("model", "training", "rule", "em", "similarity", "decoding", "search")
"""Groups that only some methods use; ``method.uses`` lists them."""

CONFIG_DIR_FLAGS = ("--config-dir", "-cd")
_further: list[Path] = []


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


def without_config_dirs(arguments: Sequence[str]) -> tuple[list[str], list[Path]]:
    """Split a command line into other arguments and the folders of ``--config-dir``.

    Raises:
        ConfigError: If the flag has no value.
    """
    rest, folders = [], []
    waiting = iter(arguments)
    for argument in waiting:
        flag, equals, value = argument.partition("=")
        if flag in CONFIG_DIR_FLAGS:
            name = value if equals else next(waiting, "")
            if not name:
                raise ConfigError(f"{flag} needs the name of a folder.")
            folders.append(Path(name))
        else:
            rest.append(argument)
    return rest, folders


def compose_config(overrides: Sequence[str], with_hydra: bool = False) -> DictConfig:
    """Compose a config from all folders that are searched."""
    paths = ",".join(f"'file://{folder}'" for folder in _further)
    further = [f"hydra.searchpath=[{paths}]"] if _further else []
    register_schema()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", [*overrides, *further], return_hydra_config=with_hydra)


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
