"""What the address of a tracking store says, without opening it."""

import re
from pathlib import Path

from emea.settings import execution

STORE_VARIABLE = "MLFLOW_TRACKING_URI"
"""Where MLflow, and our configuration, look for the store's address."""

DEFAULT_URI = execution.DEFAULT_STORE
DEFAULT_ARTIFACT_ROOT = execution.DEFAULT_ARTIFACT_ROOT

_SQLITE = "sqlite:///"
_LOGIN = re.compile(r"[^:/?#]*:(?!\d+[/?#])[^@]*(?=@)")
"""User and password, which a database takes with any sign in it; a number is a port."""


def sqlite_path(uri: str) -> Path | None:
    """The database file of a sqlite address, None for any other store."""
    name = uri.removeprefix(_SQLITE).partition("?")[0]
    if not uri.startswith(_SQLITE) or name in ("", ":memory:"):
        return None
    return Path(name)


def absolute_uri(uri: str) -> str:
    """The same store, independent of the working directory."""
    path = sqlite_path(uri)
    if path is None:
        return uri
    _, mark, query = uri.partition("?")
    return f"{_SQLITE}{path.absolute().as_posix()}{mark}{query}"


def artifact_location(uri: str, artifact_root: str) -> str | None:
    """Where a new experiment keeps its files; None leaves it to a server to choose."""
    if uri.startswith(("http://", "https://", "databricks")):
        return None
    return artifact_root if "://" in artifact_root else Path(artifact_root).absolute().as_uri()


def login_of(uri: str) -> str:
    """User and password in an address, nothing where it has none."""
    rest = uri.partition("://")[2]
    plain = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[0]
    found = _LOGIN.match(rest)
    return plain or (found[0] if found else "")


def without_login(text: str, uri: str) -> str:
    """A text that may name the store's address, such as an error's, without user and password."""
    login = login_of(uri)
    return text.replace(f"{login}@", "") if login else text


def shown_uri(uri: str) -> str:
    """The address without user and password, for logs."""
    return without_login(uri, uri)
