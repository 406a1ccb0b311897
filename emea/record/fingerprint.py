"""The fingerprint of a run: a digest of its settings, its data and the code."""

import hashlib
import json
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from omegaconf import DictConfig, OmegaConf

from emea.config.trainer_settings import lightning_options
from emea.data.graph_pair import GraphPair
from emea.record.checked_files import reading
from emea.runtime.regular_file import open_regular

PACKAGE = Path(__file__).resolve().parents[1]
TELLS_ONLY = ("record", "results", "explain", "cli", "aligner.py", "__main__.py")
"""Packages and files that record and show results, but do not change them."""

NO_MATTER = (
    "data",
    "tracking",
    "trainer",
    "study",
    "skip_recorded",
    "initial_from",
    "trust",
)
"""Keys of the configuration that do not change results, or whose content is digested instead: the
data, the weights, and the code of trusted modules."""


def fingerprint(config: DictConfig, pair: GraphPair) -> str:
    """Return a digest that is equal for runs that compute the same.

    Paths and the device do not change it. Any change of a file that computes does.
    """
    settings = OmegaConf.to_container(config, resolve=True)
    assert isinstance(settings, dict)
    told = {str(key): value for key, value in settings.items() if key not in NO_MATTER}
    told |= {"data": pair.checksum(), "parts": _official_parts(config, pair)}
    told |= {"names": _names(pair), "code": code_digest(), "weights": _weights(config)}
    if "literals" in told:
        told["literals"] = {**told["literals"], "dictionary": _dictionary(config, pair)}
    # settings of Lightning that may change results
    callbacks = OmegaConf.select(config, "trainer.callbacks")
    lightning = {"callbacks": OmegaConf.to_container(callbacks)} if callbacks else {}
    lightning |= lightning_options(config.trainer)
    told |= {"lightning": lightning} if lightning else {}
    told |= {f"code of {module}": trusted_code(module) for module in config.trust}
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


@cache
def code_digest() -> str:
    """Return a digest of the files of the package that compute."""
    files = PACKAGE.rglob("*.py")
    parts = {path: path.relative_to(PACKAGE).parts for path in files}
    return _digest(
        PACKAGE, [path for path in parts if parts[path][0] not in TELLS_ONLY]
    )


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
        content = path.read_bytes()
        digest.update(
            f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode()
        )
        digest.update(content)
    return digest.hexdigest()


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


def _dictionary(config: DictConfig, pair: GraphPair) -> str | None:
    """Return the digest of the dictionary that the run uses; ``None`` if it uses none."""
    literals = config.literals
    if literals.get("dictionary") is None:
        return None
    # imported only if needed: most runs have no dictionary
    from emea.literals.dictionaries import dictionary_file, fitting_dictionary

    name = fitting_dictionary(literals.dictionary, literals.transliterate, pair)
    if name is None:
        return None
    path = dictionary_file(name)
    with reading(path), open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _weights(config: DictConfig) -> str | None:
    if not config.initial_from:
        return None
    path = Path(config.initial_from)
    with reading(path), open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
