"""Names of entities: prefixes, IRIs, and finding an entity by its name."""

import difflib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from urllib.parse import quote, unquote

from emea.data.graph import KnowledgeGraph
from emea.errors import DataError

EMEA = "urn:emea:"
"""Where names that are no IRIs find a place."""

_IS_IRI = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|urn:[A-Za-z0-9][A-Za-z0-9-]{0,31}:).", re.S)
_LETTERS = "".join(
    [
        "A-Za-z0-9",
        "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef",  # RFC 3987: ucschar
        *(f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 14)),
        "\U000e1000-\U000efffd",
    ]
)
_MARKS = re.escape("-._~:/?@!$&'()*+,;=")
_FORBIDDEN = re.compile(f"[^{_LETTERS}{_MARKS}%]|%(?![0-9A-Fa-f]{{2}})")


def entity_iri(name: str, pair: str, side: str) -> str:
    """The name itself where it is an IRI, ``urn:emea:PAIR:SIDE:NAME`` where it is not.

    An IRI is what begins with ``scheme://`` or ``urn:namespace:``; a colon alone is too common
    in names. Characters that no IRI may hold are percent-encoded, in either case.

    Args:
        name: what the data calls the entity.
        pair: name of the data set, so that equal names of two of them stay apart.
        side: ``source`` or ``target``.
    """
    if not _IS_IRI.match(name):
        return f"{EMEA}{quote(pair, safe='')}:{side}:{quote(name, safe='')}"
    place, mark, fragment = name.partition("#")
    return f"{_encoded(place)}{mark}{_encoded(fragment)}"


def own_name(iri: str) -> str | None:
    """The name that became an IRI of ours; ``None`` where it is none."""
    parts = iri.split(":", 4)
    return unquote(parts[4]) if iri.startswith(EMEA) and len(parts) > 4 else None


def _encoded(part: str) -> str:
    return _FORBIDDEN.sub(lambda found: quote(found.group(), safe=""), part)


class Prefixes:
    """Other ways to write a name.

    Args:
        namespaces: the beginning of names by the prefix that stands for it.
    """

    def __init__(self, namespaces: Mapping[str, str] | None = None) -> None:
        self.namespaces = dict(namespaces or {})

    def spellings(self, name: str) -> Iterator[str]:
        """Yield the ways in which the graph may spell the name, the given one first.

        A file may contain URIs, in which characters outside ASCII are percent-encoded, where the
        graph contains IRIs.
        """
        yield name
        if name.startswith("<") and name.endswith(">"):
            name = name[1:-1]
            yield name
        if (full := self.in_full(name)) != name:
            yield full
        if (own := own_name(full)) is not None:
            yield own
        elif (decoded := unquote(full)) != full and _IS_IRI.match(full):
            yield decoded
        for short, namespace in self.namespaces.items():
            if name.startswith(namespace):
                yield f"{short}:{name[len(namespace) :]}"

    def in_full(self, name: str) -> str:
        """The name with what its prefix stands for."""
        prefix, colon, rest = name.partition(":")
        return self.namespaces[prefix] + rest if colon and prefix in self.namespaces else name

    def with_others(self, others: Mapping[str, str]) -> "Prefixes":
        """Also those of a file; what was given before goes first."""
        return Prefixes({**others, **self.namespaces})


NUM_GUESSES = 3


class EntityIndex:
    """Finds the entities of one graph by name.

    Args:
        graph: whose entities.
        what: what they are called in messages, e.g. ``source entity``.
    """

    def __init__(self, graph: KnowledgeGraph, what: str) -> None:
        self.what = what
        self.names = graph.all_entity_names
        self._ids = {name: entity for entity, name in enumerate(self.names)}
        self._by_local: dict[str, list[str]] = defaultdict(list)
        for name in self.names:
            self._by_local[local_name(name)].append(name)

    def find(self, name: str) -> int:
        """The entity of a whole name, or of a local part that only one entity has.

        Raises:
            DataError: there is none, or several; the error names the nearest.
        """
        if name in self._ids:
            return self._ids[name]
        meant = self._by_local.get(local_name(name), [])
        # another address with the same ending is another entity
        if len(meant) == 1 and local_name(name) == name:
            return self._ids[meant[0]]
        if len(meant) > 1:
            several = ", ".join(meant[:NUM_GUESSES])
            raise DataError(f"{name!r} may mean more than one {self.what}: {several}")
        raise DataError(f"there is no {self.what} {name!r}{self._guesses(name)}")

    def _guesses(self, name: str) -> str:
        folded: dict[str, str] = {}
        for local in self._by_local:
            folded.setdefault(local.casefold(), local)
        wanted = local_name(name).casefold()
        near = difflib.get_close_matches(wanted, folded, NUM_GUESSES)
        names = [self._by_local[folded[local]][0] for local in near]
        return f"; the nearest names are {', '.join(names)}" if names else ""


def local_name(name: str) -> str:
    """A name without the address that it may begin with: ``http://x.org/y/Z`` is ``Z``."""
    if "://" not in name:
        return name
    parts = name.rstrip("/#").replace("#", "/").split("/")
    return unquote(parts[-1]) or name
