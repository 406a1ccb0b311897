"""Files a command line names: looked for before anything heavy loads."""

from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from emea.errors import ConfigError

READER = "emea.data.own_files.read_own_files"
"""Of ``data=files``; what other readers call a source need not be a file."""

NEEDED = ("data.source", "data.target", "data.links")


def check_named_files(config: DictConfig) -> None:
    """Refuse a config whose files are not there.

    Raises:
        ConfigError: names the key and the file.
    """
    reads_files = OmegaConf.select(config, "data._target_") == READER
    keys = (*NEEDED, "data.test_links") if reads_files else ()
    for key in (*keys, "initial_from"):
        value = OmegaConf.select(config, key)
        if value is not None:
            _check_file(key, str(value))
        elif key in NEEDED:
            raise ConfigError(
                f"{key} must name a file: data=files data.source=a.nt data.target=b.ttl "
                "data.links=seeds.tsv"
            )


def _check_file(key: str, name: str) -> None:
    path = Path(name).expanduser()
    if path.is_dir():
        raise ConfigError(f"{key} must name a file, and {name} is a folder")
    if not path.exists():
        raise ConfigError(f"{key}: there is no file {name}")
