"""Removes the login of the store's address from the files that Hydra writes."""

import re
from collections.abc import Iterable
from pathlib import Path

from hydra.conf import HydraConf
from omegaconf import DictConfig, OmegaConf

from emea.record.checked_files import write_atomic
from emea.record.store_uri import login_of, shown_uri

SWEEP_FILE = "multirun.yaml"
LOGIN = re.compile(r"(?<=://)[^/?#\s]*@")
"""In an address, however the command line or YAML quotes what is in it."""


def clean_hydra_files(config: DictConfig, hydra: HydraConf) -> None:
    """Remove user and password of the store's address from Hydra's files.

    Hydra writes the command unchanged before it starts a job, so the job removes the login from the
    files. A resumed run reads the login from the environment, not from these files.

    Args:
        config: The configuration of the job.
        hydra: Hydra's own config in the job.
    """
    login = login_of(str(OmegaConf.select(config, "tracking.uri")))
    if login:
        _clean(_written(hydra), login)


def _written(hydra: HydraConf) -> list[Path]:
    """Return Hydra's files of the job, and those of its sweep."""
    of_job = Path(hydra.runtime.output_dir) / (hydra.output_subdir or ".hydra")
    of_sweep = Path(hydra.sweep.dir) / SWEEP_FILE
    return [*of_job.glob("*.yaml"), *([of_sweep] if of_sweep.is_file() else [])]


def _clean(files: Iterable[Path], login: str) -> None:
    for file in files:
        text = file.read_text(encoding="utf-8")
        cleaned = LOGIN.sub("", text)
        for spelled in (login, login.replace("'", "''")):
            cleaned = cleaned.replace(f"{spelled}@", "")
        if cleaned != text:
            write_atomic(file, cleaned)


def without_secret(override: str) -> str:
    """Return an override without the user and password of an address in its value."""
    key, equals, value = override.partition("=")
    return f"{key}{equals}{shown_uri(value)}" if "://" in value else override
