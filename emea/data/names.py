"""Names of entities: IRIs, prefixes, and search for an entity by name."""

import difflib
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote, unquote

import numpy as np

from emea.data.attributes import PLAIN, AttributeTriples
from emea.data.graph import KnowledgeGraph
from emea.errors import DataError

EMEA = "urn:emea:"
"""Namespace for names that are not IRIs."""

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
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_FORBIDDEN = re.compile(f"[^{_LETTERS}{_MARKS}%]|%(?![0-9A-Fa-f]{{2}})")


def entity_iri(name: str, pair: str, side: str) -> str:
    """Return the name if it is an IRI, and ``urn:emea:PAIR:SIDE:NAME`` if it is not.

    An IRI starts with ``scheme://`` or ``urn:namespace:``. Many names that are not IRIs contain a
    colon, so a colon is not enough. Characters that an IRI may not contain are percent-encoded.

    Args:
        name: The name of the entity in the data.
        pair: The name of the data set, which makes the IRI unique among data sets.
        side: ``source`` or ``target``.
    """
    if not _IS_IRI.match(name):
        return f"{EMEA}{quote(pair, safe='')}:{side}:{quote(name, safe='')}"
    place, mark, fragment = name.partition("#")
    return f"{_encoded(place)}{mark}{_encoded(fragment)}"


def entity_uri(iri: str) -> str:
    """Return the URI of an IRI: characters outside ASCII are percent-encoded (RFC 3987, 3.1)."""
    return _NOT_ASCII.sub(lambda found: quote(found.group()), iri)


def uri_numbers(names: Sequence[str]) -> dict[str, int]:
    """Return the number of each name that is an IRI, by the URI that exports write for it.

    If several names have the same URI, the first one has it.
    """
    numbers: dict[str, int] = {}
    for number, name in enumerate(names):
        if _IS_IRI.match(name):
            numbers.setdefault(entity_uri(entity_iri(name, "", "")), number)
    return numbers


def own_name(iri: str) -> str | None:
    """Return the name that ``entity_iri`` turned into this IRI, or ``None`` for other IRIs."""
    parts = iri.split(":", 4)
    return unquote(parts[4]) if iri.startswith(EMEA) and len(parts) > 4 else None


def _encoded(part: str) -> str:
    return _FORBIDDEN.sub(lambda found: quote(found.group(), safe=""), part)


class Prefixes:
    """Expands and abbreviates names with prefixes.

    Args:
        namespaces: The namespace of each prefix.
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
        """Return the name with its prefix replaced by the namespace."""
        prefix, colon, rest = name.partition(":")
        return self.namespaces[prefix] + rest if colon and prefix in self.namespaces else name

    def with_others(self, others: Mapping[str, str]) -> "Prefixes":
        """Return these prefixes and others, for example those of a file. These take precedence."""
        return Prefixes({**others, **self.namespaces})


NUM_GUESSES = 3


class EntityIndex:
    """Finds the entities of a graph by full name, local name or label.

    Args:
        graph: The graph.
        what: The kind of entity in messages, such as ``source entity``.
    """

    def __init__(self, graph: KnowledgeGraph, what: str) -> None:
        self.what = what
        self.names = graph.all_entity_names
        self._ids = {name: entity for entity, name in enumerate(self.names)}
        self._by_local: dict[str, list[str]] = defaultdict(list)
        for name in self.names:
            self._by_local[local_name(name)].append(name)
        self._by_label: dict[str, list[str]] = defaultdict(list)
        for entity, name in enumerate(self.names):
            if label := graph.entity_label(entity):
                self._by_label[label].append(name)

    def find(self, name: str) -> int:
        """Return the entity with this full name, or with this local name or label if it is unique.

        Raises:
            DataError: No entity or several entities match. The error suggests names.
        """
        if name in self._ids:
            return self._ids[name]
        # a different IRI with the same local name is a different entity
        meant = self._by_local.get(name) or self._by_label.get(name, [])
        if len(meant) == 1:
            return self._ids[meant[0]]
        if len(meant) > 1:
            several = ", ".join(meant[:NUM_GUESSES])
            raise DataError(
                f"{name!r} matches more than one {self.what}: {several}. Use the full name."
            )
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
    """Return the last part of an IRI, such as ``Z`` for ``http://x.org/y/Z``, or the name."""
    if "://" not in name:
        return name
    parts = name.rstrip("/#").replace("#", "/").split("/")
    return unquote(parts[-1]) or name


IRI_NAME = "urn:emea:iri_name"
"""The attribute for names made from IRIs."""


def iri_name(iri: str) -> str:
    """Return the local part of an IRI as text.

    For example, ``http://x.org/Kim_Dae-jung`` becomes ``Kim Dae-jung``.
    """
    return " ".join(local_name(iri).replace("_", " ").split())


def with_iri_names(graph: KnowledgeGraph) -> KnowledgeGraph:
    """Return the graph with an additional attribute, the name made from the IRI of each entity.

    Other literals are kept. Entities without a label get this name as their label.
    """
    names = [iri_name(name) for name in graph.all_entity_names]
    given = graph.attributes
    entities = np.array([entity for entity, name in enumerate(names) if name], dtype=np.int64)
    texts = [name for name in names if name]
    before = (0, 0) if given is None else (len(given.attribute_names), len(given.values))
    kinds = [PLAIN] if given is None else [*given.kind_names, PLAIN]
    triples = np.stack(
        [entities, np.full(len(texts), before[0]), before[1] + np.arange(len(texts))], axis=1
    )
    plain = np.full(len(texts), len(kinds) - 1)
    attributes = AttributeTriples(
        triples if given is None else np.concatenate([given.triples, triples]),
        [*([] if given is None else given.attribute_names), IRI_NAME],
        [*([] if given is None else given.values), *texts],
        plain if given is None else np.concatenate([given.kinds, plain]),
        kinds,
    )
    labels = [label or name for label, name in zip(graph.labels or names, names, strict=True)]
    return replace(graph, attributes=attributes, labels=labels)
