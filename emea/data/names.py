"""Names of entities: IRIs, prefixes, and search for an entity by name."""

import difflib
import logging
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import quote, unquote

import numpy as np

from emea.data.attributes import LABEL_ATTRIBUTES, PLAIN, AttributeTriples
from emea.data.entity_kinds import is_blank
from emea.data.graph import KnowledgeGraph
from emea.errors import ConfigError, DataError

log = logging.getLogger(__name__)

EMEA = "urn:emea:"
"""Namespace for names that are not IRIs."""

_IS_IRI = re.compile(
    r"(?:[A-Za-z][A-Za-z0-9+.-]*://|urn:[A-Za-z0-9][A-Za-z0-9-]{0,31}:).", re.S
)
_LETTERS = "".join(
    [
        "A-Za-z0-9",
        "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef",  # RFC 3987: ucschar
        *(
            f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}"
            for plane in range(1, 14)
        ),
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


def based_iri(base: str, name: str) -> str:
    """Return the IRI of an id: the base and the id, in which reserved characters are encoded.

    An id that is an IRI is returned unchanged.
    """
    if _IS_IRI.match(name):
        return name
    return base + _encoded(name).replace("?", "%3F").replace("#", "%23")


_NEXT_BASE = re.compile(r",\s*(?=[A-Za-z][A-Za-z0-9+.-]*:)")


def base_of(given: str | None, side: int) -> str | None:
    """Return the base of a side: 0 for the source, 1 for the target.

    Args:
        given: One base for both, or two that a comma separates.
        side: The side.

    Raises:
        ConfigError: A base is not an absolute IRI.
    """
    if given is None:
        return None
    bases = _NEXT_BASE.split(given.strip())
    wrong = [one for one in bases if entity_iri(one, "", "") != one]
    if wrong or len(bases) > 2:
        raise ConfigError(
            "data.base_iri must be an absolute IRI such as http://example.org/, or two with a "
            f"comma, one for each graph; got {given!r}."
        )
    return bases[side] if len(bases) > 1 else bases[0]


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
        return (
            self.namespaces[prefix] + rest
            if colon and prefix in self.namespaces
            else name
        )

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


def cell(name: str) -> str:
    """Escape tabs and line breaks in a name.

    Backslashes are not escaped. Names that were read from files contain neither tabs nor line
    breaks, so only graphs built in Python are affected.
    """
    return name.replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")


def local_name(name: str) -> str:
    """Return the last part of an IRI, such as ``Z`` for ``http://x.org/y/Z``, or the name."""
    if "://" not in name:
        return name
    parts = name.rstrip("/#").replace("#", "/").split("/")
    return unquote(parts[-1]) or name


LEAST_WORDED, LEAST_STEMS = 0.7, 0.5
"""Share of names that consist of words, and of names that differ in more than a number, from which
names are words rather than codes. Ours: they separate titles from numbered and random names."""

_MIXED = re.compile(r"[^\W\d_]\d|\d[^\W\d_]")
_LONG_RUN = re.compile(r"[^\W\d_]{3,}")
_DIGITS = re.compile(r"\d+")
_NOT_LATIN = re.compile("[\u0370-\U0003ffff]{2,}")
"""Words of scripts such as Chinese are shorter."""


def is_worded(name: str) -> bool:
    """Return whether a name consists of words: not of a number, a code or a hash."""
    name = name.replace("_", " ")
    if _MIXED.search(name) or not (_LONG_RUN.search(name) or _NOT_LATIN.search(name)):
        return False
    num_digits = sum(map(str.isdigit, name))
    num_letters = sum(map(str.isalpha, name))
    return num_letters >= 2 * num_digits


def are_words(names: Sequence[str]) -> bool:
    """Return whether names are mostly words and do not only differ in a number."""
    if not names:
        return False
    num_worded = sum(map(is_worded, names))
    stems = {_DIGITS.sub("", name).casefold() for name in names}
    return num_worded >= LEAST_WORDED * len(names) and len(stems) >= LEAST_STEMS * len(
        names
    )


LABEL_NAMES = (
    "preflabel",
    "label",
    "name",
    "title",
    "full_name",
    "full name",
    "fullname",
)
"""Last parts of the names of attributes that name an entity, in order of preference."""


def label_name(attribute: str) -> str:
    """Return the last part of the name of an attribute, without regard to case."""
    return local_name(attribute).rpartition(":")[2].lower()


def further_label_attributes(found: AttributeTriples) -> list[str]:
    """Return the attributes that name entities in a vocabulary that is not known.

    The last part of the name of such an attribute is one of ``LABEL_NAMES``, and its values are
    words. Those of ``title`` must also differ, because it may be that of a person, such as ``Dr``.

    Args:
        found: The literals of a graph.
    """
    chosen = []
    for number, name in enumerate(found.attribute_names):
        last = label_name(name)
        if name in LABEL_ATTRIBUTES or last not in LABEL_NAMES:
            continue
        held = found.triples[found.triples[:, 1] == number, 2]
        texts = [found.values[value] for value in held.tolist()]
        num_worded = sum(map(is_worded, texts))
        is_title = last == "title"
        if num_worded >= LEAST_WORDED * len(texts) and (
            are_words(texts) or not is_title
        ):
            chosen.append((LABEL_NAMES.index(last), name))
    return [name for _, name in sorted(chosen)]


IRI_NAME = "urn:emea:iri_name"
"""The attribute for names made from IRIs."""


def iri_name(iri: str) -> str:
    """Return the local part of an IRI as text.

    For example, ``http://x.org/Kim_Dae-jung`` becomes ``Kim Dae-jung``.
    """
    return " ".join(local_name(iri).replace("_", " ").split())


def title_of(name: str) -> str:
    """Return a name as words: the last part of an IRI without underscores."""
    return name if is_blank(name) else iri_name(name) or local_name(name)


def entity_title(graph: KnowledgeGraph, entity: int) -> str:
    """Return what an entity is called: its label, or its name as words."""
    return graph.entity_label(entity) or title_of(graph.entity_name(entity))


def with_iri_names(graph: KnowledgeGraph) -> KnowledgeGraph:
    """Return the graph with an additional attribute, the name made from the IRI of each entity.

    Other literals are kept. Entities without a label get this name as their label.
    """
    return _with_names(graph, [iri_name(name) for name in graph.all_entity_names])


MOST_LABELLED = 0.1
"""Share of entities with a label up to which the others are named after their IRIs.

Ours: names of 1,186 of 2,656 entities of OAEI 2014 identity, which are categories, lowered F1 from
0.54 to 0.39.
"""


def with_missing_names(graph: KnowledgeGraph, label: str) -> KnowledgeGraph:
    """Return the graph with names made from the IRIs of entities that have no label.

    This happens only if hardly any entity has a label: in other graphs, entities without a label
    are often of another sort, such as categories, and their names would compete with the labels.
    The names must also be words: an IRI that ends in a number or a hash says nothing. Blank nodes
    get no name.

    Args:
        graph: The graph, with its literals.
        label: The name of its file, for the log.
    """
    names = [""] * graph.num_entities
    num_labelled = 0
    for entity, name in enumerate(graph.all_entity_names):
        if graph.entity_label(entity) is not None:
            num_labelled += 1
        elif not is_blank(name):
            names[entity] = iri_name(name)
    if num_labelled > MOST_LABELLED * graph.num_entities:
        return graph
    given = [name for name in names if name]
    if not are_words(given):
        return graph
    log.info(
        "%s: %s entities without a label are named after their IRIs, such as %r "
        "(data.iri_names=false leaves these names out)",
        label,
        f"{len(given):,}",
        given[0],
    )
    # single codes among the words stay without a name
    return _with_names(graph, [name if is_worded(name) else "" for name in names])


def _with_names(graph: KnowledgeGraph, names: Sequence[str]) -> KnowledgeGraph:
    """Return the graph with a name for each entity; an empty text means none."""
    given = graph.attributes
    entities = np.array(
        [entity for entity, name in enumerate(names) if name], dtype=np.int64
    )
    texts = [name for name in names if name]
    before = (
        (0, 0) if given is None else (len(given.attribute_names), len(given.values))
    )
    kinds = [PLAIN] if given is None else [*given.kind_names, PLAIN]
    triples = np.stack(
        [entities, np.full(len(texts), before[0]), before[1] + np.arange(len(texts))],
        axis=1,
    )
    plain = np.full(len(texts), len(kinds) - 1)
    attributes = AttributeTriples(
        triples if given is None else np.concatenate([given.triples, triples]),
        [*([] if given is None else given.attribute_names), IRI_NAME],
        [*([] if given is None else given.values), *texts],
        plain if given is None else np.concatenate([given.kinds, plain]),
        kinds,
    )
    labels = [
        label or name for label, name in zip(graph.labels or names, names, strict=True)
    ]
    return replace(graph, attributes=attributes, labels=labels)
