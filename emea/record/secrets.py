"""What Hydra writes down of a command, without the login of the store's address."""

import re
from collections.abc import Iterable
from pathlib import Path

from hydra.conf import HydraConf
from omegaconf import DictConfig, OmegaConf

from emea.record.atomic import write_atomic
from emea.record.store_uri import login_of, shown_uri

SWEEP_FILE = "multirun.yaml"
LOGIN = re.compile(r"(?<=://)[^/?#\s]*@")
"""In an address, however the command line or YAML quotes what is in it."""


def clean_hydra_files(config: DictConfig, hydra: HydraConf) -> None:
    """Take user and password out of Hydra's files, where the store's address has them.

    Hydra writes the command as it was typed before it starts a job, so the job cleans up behind
    it. Nothing reads a login there: a resumed run reads it from the environment.

    Args:
        config: The configuration of the job.
        hydra: Hydra's own config in the job.
    """
    login = login_of(str(OmegaConf.select(config, "tracking.uri")))
    if login:
        _clean(_written(hydra), login)


def _written(hydra: HydraConf) -> list[Path]:
    """Hydra's files of the job, and of the sweep where it belongs to one."""
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
    """An override of the command line; if its value is an address, without user and password."""
    key, equals, value = override.partition("=")
    return f"{key}{equals}{shown_uri(value)}" if "://" in value else override
