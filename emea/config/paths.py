"""Checks of the files, folders and modules on a command line, before torch is imported."""

import errno
import os
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from emea.config.composition import CONF
from emea.errors import ConfigError, DataError

READER = "emea.data.sources.own_files.read_own_files"
"""The reader of ``data=files``; the ``source`` of another reader may not be a file."""

NEEDED = ("data.source", "data.target")
NO_SEEDS = (
    "Give known links (data.links=FILE, or --links FILE), or use the literals of the graphs as "
    "evidence (literals=equal). If IRIs contain names, data.iri_names=true makes literals of them."
)


def check_local(name: object, what: str) -> None:
    """Raise an error if a name is a web address and not a file.

    Args:
        name: The name of a file.
        what: What the error message calls it.

    Raises:
        ConfigError: If it is an address.
    """
    if str(name).lower().startswith(("http://", "https://")):
        raise ConfigError(f"{what} must be a file. Download {name} first (docs/own_graphs.md).")


def check_paths(config: DictConfig) -> None:
    """Raise an error if a config names missing files or modules.

    Raises:
        ConfigError: If one is missing. The message names the key and the file or module.
    """
    check_modules(config.get("trust") or ())
    reads_files = OmegaConf.select(config, "data._target_") == READER
    keys = (*NEEDED, "data.links", "data.test_links", "data.rejected") if reads_files else ()
    for key in (*keys, "initial_from"):
        value = OmegaConf.select(config, key)
        if value is not None:
            _check_file(key, str(value))
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


def _check_file(key: str, name: str) -> None:
    check_local(name, key)
    path = Path(name).expanduser()
    if path.is_dir():
        raise ConfigError(f"{key} must be a file, but {name} is a folder.")
    if not path.exists():
        raise ConfigError(f"{key}: there is no file {name}. Check the path.")


def check_run_folder(arguments: Sequence[str]) -> None:
    """Raise an error if a run folder or sweep folder is not writable.

    Hydra creates the folder before the run starts and would report an error with a traceback.

    Args:
        arguments: The command line.

    Raises:
        DataError: If the folder is not writable. The message explains how to choose another one.
    """
    given = dict(argument.lstrip("+").partition("=")[::2] for argument in arguments)
    if "resume" in given:
        folder, advice = given["resume"], "Resume a copy of it in a folder that you can write to."
        if not Path(folder).is_dir():
            return  # resuming the run reports the error
    else:
        is_sweep = any(flag in given for flag in ("-m", "--multirun"))
        key = "hydra.sweep.dir" if is_sweep else "hydra.run.dir"
        usual = OmegaConf.to_container(OmegaConf.load(CONF / "config.yaml"))
        assert isinstance(usual, dict)
        default = usual["hydra"]["sweep" if is_sweep else "run"]["dir"]
        folder, advice = given.get(key, default).strip("'\""), f"Choose another with {key}=FOLDER."
        if not folder:
            raise DataError(f"{key} is empty. Choose a folder with {key}=FOLDER.")
    # parts that Hydra fills in, such as the time, are new folders
    known = folder.split("${")[0]
    path = Path(known if known == folder else known.rpartition("/")[0])
    try:
        check_writable(path)
        _check_links(path)
    except DataError as error:
        raise DataError(f"{error} {advice}") from error


def _check_links(folder: Path) -> None:
    """Raise an error if Hydra would write its files through a symbolic link.

    Hydra writes into ``.hydra`` before a run starts. The run itself replaces links.
    """
    for hydra in (folder / ".hydra", *folder.glob("*/.hydra")):
        for path in (hydra, *hydra.glob("*.yaml")):
            if path.is_symlink():
                raise DataError(f"{path} is a symbolic link, so a run would write elsewhere.")


def check_writable(folder: Path) -> None:
    """Test whether a folder can be created, or written if it exists.

    Raises:
        DataError: If the folder cannot be created or written. The message contains the reason.
    """
    nearest = folder.absolute()
    try:
        nearest.lstat()
    except OSError as error:
        if error.errno in (errno.ENAMETOOLONG, errno.ELOOP):
            raise DataError(
                f"The run folder {folder} cannot be created: {error.strerror}."
            ) from error
    while not os.path.lexists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    if not nearest.is_dir():
        raise DataError(f"The run folder {folder} cannot be created: {nearest} is not a folder.")
    try:
        # permissions are not enough: the disk may be read-only
        with tempfile.TemporaryDirectory(prefix=".emea-", dir=nearest):
            return
    except OSError as error:
        raise DataError(
            f"The run folder {folder} cannot be written: {nearest}: {error.strerror}."
        ) from error
