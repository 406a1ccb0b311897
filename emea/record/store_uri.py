"""The address of a tracking store, and the login in it, which no file of a run may contain."""

import re
from pathlib import Path
from urllib.parse import urlsplit

STORE_VARIABLE = "MLFLOW_TRACKING_URI"
"""Where MLflow, and our configuration, look for the store's address."""

_SQLITE = "sqlite:///"
_ADDRESS = re.compile(r"[A-Za-z][\w+.-]*:")
_LOGIN = re.compile(r"[^:/?#]*:(?!\d+[/?#])[^@]*(?=@)")
"""User and password, which a database takes with any sign in it; a number is a port."""


def sqlite_path(uri: str) -> Path | None:
    """Return the database file of a sqlite address; ``None`` for any other store."""
    name = uri.removeprefix(_SQLITE).partition("?")[0]
    if not uri.startswith(_SQLITE) or name in ("", ":memory:"):
        return None
    return Path(name)


def is_local(uri: str) -> bool:
    """Return whether an address of a store or of files belongs to this machine."""
    scheme = urlsplit(uri).scheme if _ADDRESS.match(uri) else ""
    return scheme in ("", "file", "sqlite") and uri not in (
        "databricks",
        "databricks-uc",
        "uc",
    )


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
    return (
        artifact_root
        if "://" in artifact_root
        else Path(artifact_root).absolute().as_uri()
    )


def without_login(text: str, uri: str) -> str:
    """Return a text, such as an error message, without the user and password of the address."""
    rest = uri.partition("://")[2]
    plain = re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[0]
    found = _LOGIN.match(rest)
    login = plain or (found[0] if found else "")
    return text.replace(f"{login}@", "") if login else text


def shown_uri(uri: str) -> str:
    """Return the address without user and password, for logs."""
    return without_login(uri, uri)
