"""Files a command line names: looked for before anything heavy loads."""

from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from emea.errors import ConfigError

NEEDED = ("data.source", "data.target", "data.links")
"""Where an option has them, a run needs them; ``data=files`` has."""

OPTIONAL = ("data.test_links", "initial_from")


def check_named_files(config: DictConfig) -> None:
    """Refuse a config whose files are not there.

    Raises:
        ConfigError: names the key and the file.
    """
    for key in (*NEEDED, *OPTIONAL):
        group, _, name = key.rpartition(".")
        value = OmegaConf.select(config, key)
        if value is not None:
            _check_file(key, str(value))
        elif key in NEEDED and name in config[group]:
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
