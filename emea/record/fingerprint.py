"""The fingerprint of a run: a digest of its settings, its data and the code."""

import ast
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from emea.config.settings.execution import lightning_options
from emea.data.graph_pair import GraphPair
from emea.errors import DataError
from emea.record.checked_files import write_atomic

PACKAGE = Path(__file__).resolve().parents[1]
TELLS_ONLY = ("record", "results", "explain", "cli", "aligner.py", "__main__.py")
"""Packages and files that record and show results, but do not change them."""

NO_MATTER = ("data", "tracking", "trainer", "study", "skip_recorded", "initial_from", "trust")
"""Keys of the configuration that do not change results, or whose content is digested instead: the
data, the weights, and the code of trusted modules."""


def fingerprint(config: DictConfig, pair: GraphPair) -> str:
    """Return a digest that is equal for runs that compute the same.

    Comments, paths and the device do not change it.
    """
    settings = OmegaConf.to_container(config, resolve=True)
    assert isinstance(settings, dict)
    told = {str(key): value for key, value in settings.items() if key not in NO_MATTER}
    told |= {"data": pair.checksum(), "parts": _official_parts(config, pair)}
    told |= {"names": _names(pair), "code": code_digest(), "weights": _weights(config)}
    told |= _lightning(config)
    told |= {f"code of {module}": trusted_code(module) for module in config.trust}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _lightning(config: DictConfig) -> dict[str, object]:
    """Return the settings of Lightning that may change results; empty if there are none."""
    callbacks = OmegaConf.select(config, "trainer.callbacks")
    given = {"callbacks": OmegaConf.to_container(callbacks)} if callbacks else {}
    found = given | lightning_options(config.trainer)
    return {"lightning": found} if found else {}


@cache
def code_digest() -> str:
    """Return a digest of the package's code that computes, without comments and docstrings.

    Parsing the sources takes seconds. The digest is therefore kept in a cache file, next to a
    digest of the unchanged files.
    """
    files = sorted(
        path
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] not in TELLS_ONLY
    )
    written = hashlib.sha256(sys.version.encode())
    for path in files:
        content = path.read_bytes()
        written.update(f"{path.relative_to(PACKAGE).as_posix()} {len(content)}\n".encode())
        written.update(content)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    place = Path(base) / "emea" / f"code-{written.hexdigest()[:32]}"
    with suppress(OSError, ValueError):
        known = place.read_text("ascii")
        if re.fullmatch("[0-9a-f]{64}", known):
            return known
    digest = _digest(PACKAGE, files)
    with suppress(OSError):  # without a cache file, the next run computes it again
        write_atomic(place, digest)
    return digest


def trusted_code(module: str) -> str | None:
    """Return the digest of a user's module or package; ``None`` if it has no source."""
    try:
        found = find_spec(module)
    except (ImportError, ValueError):
        return None  # instantiating the class reports the error
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        return None
    file = Path(found.origin)
    is_package = found.submodule_search_locations is not None
    return _digest(file.parent, file.parent.rglob("*.py") if is_package else [file])


def _digest(folder: Path, files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(files):
        place = path.relative_to(folder).as_posix()
        digest.update(f"{place}\n{bare_code(path.read_text('utf-8'))}\n".encode())
    return digest.hexdigest()


def bare_code(source: str) -> str:
    """Return the source without comments and docstrings."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [line for line in body if not _is_text(line)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(statement: ast.stmt) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _official_parts(config: DictConfig, pair: GraphPair) -> str | None:
    """Return a digest of the official parts if the split uses them.

    The checksum of a pair covers all its links, but not their division into parts.
    """
    if config.split.name == "random" or pair.official is None:
        return None
    parts = (pair.official.train, pair.official.validation, pair.official.test)
    digests = [hashlib.sha256(part.tobytes()).hexdigest() for part in parts]
    return " ".join([*digests, str(pair.official.num_absent)])


def _names(pair: GraphPair) -> str:
    """Return a digest of the names and labels that results contain, and of the kinds of literals.

    The checksum of a pair does not cover them. The datatype of a literal decides which literals are
    equal.
    """
    digest = hashlib.sha256()
    for graph in (pair.source, pair.target):
        for texts in (graph.entity_names, graph.relation_names, graph.labels):
            digest.update("\n".join(texts or ()).encode(errors="surrogatepass") + b"\0")
        if graph.attributes is not None:
            names = (graph.attributes.attribute_names, graph.attributes.kind_names)
            digest.update(json.dumps(names).encode() + graph.attributes.kinds.tobytes())
    return digest.hexdigest()


def _weights(config: DictConfig) -> str | None:
    if not config.initial_from:
        return None
    try:
        return hashlib.sha256(Path(config.initial_from).read_bytes()).hexdigest()
    except OSError as error:
        raise DataError(
            f"initial_from={config.initial_from} cannot be read: {error}. Check the path."
        ) from error
