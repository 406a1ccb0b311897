"""Checks of the files, folders and modules on a command line, before torch is imported."""

import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from emea.data.advice import NO_SEEDS
from emea.errors import ConfigError, DataError
from emea.runtime.regular_file import check_local

if TYPE_CHECKING:
    from omegaconf import DictConfig

READER = "emea.data.sources.own_files.read_own_files"
"""The reader of ``data=files``; the ``source`` of another reader may not be a file."""

PART_READER = "emea.divide.division.read_part"

NEEDED = ("data.source", "data.target")


def check_paths(config: "DictConfig") -> None:
    """Raise an error if a config names missing files or modules.

    Raises:
        ConfigError: If one is missing. The message names the key and the file or module.
    """
    from omegaconf import OmegaConf

    check_modules(config.get("trust") or ())
    reads_files = OmegaConf.select(config, "data._target_") == READER
    keys = (
        (*NEEDED, "data.links", "data.test_links", "data.rejected")
        if reads_files
        else ()
    )
    for key in (*keys, "initial_from"):
        value = OmegaConf.select(config, key)
        if value is not None:
            check_local(value, key)
            path = Path(str(value)).expanduser()
            if path.is_dir():
                raise ConfigError(f"{key} must be a file, but {value} is a folder.")
            if not path.exists():
                raise ConfigError(f"{key}: there is no file {value}. Check the path.")
        elif key in NEEDED:
            raise ConfigError(
                f"{key} must name a file: data=files data.source=a.nt data.target=b.ttl "
                "data.links=seeds.tsv"
            )
        elif key == "data.links" and not OmegaConf.select(config, "data.keep_literals"):
            raise ConfigError(f"There is nothing to start from. {NO_SEEDS}")


def check_modules(trust: Sequence[str]) -> None:
    """Raise an error if Python does not find a module of the user, or the package it belongs to.

    Nothing is imported.

    Raises:
        ConfigError: If a module is missing.
    """
    for module in trust:
        package = module.partition(".")[0]
        try:
            is_found = package in sys.modules or find_spec(package) is not None
        except ValueError:  # the name is empty
            is_found = False
        if not is_found:
            raise ConfigError(
                f"trust names {module}, but Python does not find it. Check the name; PYTHONPATH "
                "must contain the folder of the module."
            )


def check_no_link(folder: Path) -> None:
    """Raise an error if an output folder is a symbolic link, which may lead anywhere.

    Raises:
        DataError: If it is.
    """
    if folder.is_symlink():
        raise DataError(
            f"{folder} is a symbolic link. Remove it, or give the folder itself with --out: "
            f"{folder.resolve()}."
        )


def check_writable(folder: Path) -> None:
    """Test whether a run folder can be created, or written if it exists.

    Hydra writes into ``.hydra`` before a run starts, also through symbolic links. The run itself
    replaces links.

    Raises:
        DataError: If the folder cannot be created or written, or if Hydra would write elsewhere.
    """
    check_no_link(folder)
    for hydra in (folder / ".hydra", *folder.glob("*/.hydra")):
        for path in (hydra, *hydra.glob("*.yaml")):
            if path.is_symlink():
                raise DataError(
                    f"{path} is a symbolic link, so a run would write elsewhere."
                )
    nearest = place = folder.absolute()
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            place.lstat()  # the name may be too long, or have too many links
        nearest = next(one for one in (place, *place.parents) if os.path.lexists(one))
        # permissions are not enough: the disk may be read-only
        with tempfile.TemporaryDirectory(prefix=".emea-", dir=nearest):
            return
    except OSError as error:
        reason = f"{nearest}: {error.strerror}"
        raise DataError(
            f"The run folder {folder} cannot be written: {reason}."
        ) from error
