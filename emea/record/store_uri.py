"""The address of a tracking store, and the login in it, which no file of a run may contain."""

import re
from pathlib import Path

from hydra.conf import HydraConf
from omegaconf import DictConfig, OmegaConf

from emea.config.settings import execution
from emea.record.checked_files import write_atomic

STORE_VARIABLE = "MLFLOW_TRACKING_URI"
"""Where MLflow, and our configuration, look for the store's address."""

DEFAULT_URI = execution.DEFAULT_STORE
DEFAULT_ARTIFACT_ROOT = execution.DEFAULT_ARTIFACT_ROOT

_SQLITE = "sqlite:///"
_LOGIN = re.compile(r"[^:/?#]*:(?!\d+[/?#])[^@]*(?=@)")
"""User and password, which a database takes with any sign in it; a number is a port."""

_QUOTED_LOGIN = re.compile(r"(?<=://)[^/?#\s]*@")
"""In an address, however the command line or YAML quotes what is in it."""


def sqlite_path(uri: str) -> Path | None:
    """Return the database file of a sqlite address; ``None`` for any other store."""
    name = uri.removeprefix(_SQLITE).partition("?")[0]
    if not uri.startswith(_SQLITE) or name in ("", ":memory:"):
        return None
    return Path(name)


def absolute_uri(uri: str) -> str:
    """Return the same store, independent of the working directory."""
    path = sqlite_path(uri)
    if path is None:
        return uri
    _, mark, query = uri.partition("?")
    return f"{_SQLITE}{path.absolute().as_posix()}{mark}{query}"


def artifact_location(uri: str, artifact_root: str) -> str | None:
    """Return the folder for the files of a new experiment; ``None`` if the server chooses it."""
    if uri.startswith(("http://", "https://", "databricks")):
        return None
    return artifact_root if "://" in artifact_root else Path(artifact_root).absolute().as_uri()


def login_of(uri: str) -> str:
    """Return user and password in an address; an empty string if it has none."""
    rest = uri.partition("://")[2]
    plain = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[0]
    found = _LOGIN.match(rest)
    return plain or (found[0] if found else "")


def without_login(text: str, uri: str) -> str:
    """Return a text, such as an error message, without the user and password of the address."""
    login = login_of(uri)
    return text.replace(f"{login}@", "") if login else text


def shown_uri(uri: str) -> str:
    """Return the address without user and password, for logs."""
    return without_login(uri, uri)


def without_secret(override: str) -> str:
    """Return an override without the user and password of an address in its value."""
    key, equals, value = override.partition("=")
    return f"{key}{equals}{shown_uri(value)}" if "://" in value else override


def clean_hydra_files(config: DictConfig, hydra: HydraConf) -> None:
    """Remove user and password of the store's address from Hydra's files of a job and its sweep.

    Hydra writes the command unchanged before it starts a job, so the job removes the login from the
    files. A resumed run reads the login from the environment, not from these files.

    Args:
        config: The configuration of the job.
        hydra: Hydra's own config in the job.
    """
    login = login_of(str(OmegaConf.select(config, "tracking.uri")))
    if not login:
        return
    of_job = Path(hydra.runtime.output_dir) / (hydra.output_subdir or ".hydra")
    for file in (*of_job.glob("*.yaml"), *Path(hydra.sweep.dir).glob("multirun.yaml")):
        text = file.read_text(encoding="utf-8")
        cleaned = _QUOTED_LOGIN.sub("", text)
        for spelled in (login, login.replace("'", "''")):
            cleaned = cleaned.replace(f"{spelled}@", "")
        if cleaned != text:
            write_atomic(file, cleaned)
