"""Literals of a graph as attribute triples, and labels chosen from them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import compress
from typing import NamedTuple

import numpy as np

from emea.data.arrays import IntArray, check_ids, frozen
from emea.errors import DataError

LABEL_ATTRIBUTES = (
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://xmlns.com/foaf/0.1/name",
    "http://schema.org/name",
    "https://schema.org/name",
    *("skos:prefLabel", "rdfs:label", "foaf:name", "schema:name", "label", "name"),
)
"""Attributes that name an entity, in order of preference."""


class Kind(NamedTuple):
    """Language tag and datatype IRI of a literal; both are empty for plain text."""

    language: str = ""
    datatype: str = ""


PLAIN = Kind()


@dataclass(frozen=True, eq=False, repr=False)
class AttributeTriples:
    """The literal triples of one graph.

    Args:
        triples: ``[num_triples, 3]`` entity, attribute and value, each numbered from zero.
        attribute_names: The name of each attribute.
        values: The text of each value, as in the file.
        kinds: ``[num_values]`` index of each value's kind.
        kind_names: Language and datatype of each kind.
    """

    triples: IntArray
    attribute_names: Sequence[str]
    values: Sequence[str]
    kinds: IntArray
    kind_names: Sequence[Kind] = (PLAIN,)

    def __post_init__(self) -> None:
        object.__setattr__(self, "triples", frozen(self.triples, 3))
        object.__setattr__(self, "kinds", frozen(self.kinds, 1).reshape(-1))
        check_ids(self.triples[:, 1], len(self.attribute_names), "attribute")
        check_ids(self.triples[:, 2], len(self.values), "value")
        if len(self.kinds) != len(self.values):
            raise DataError(f"{len(self.values)} values have {len(self.kinds)} kinds")

    def __repr__(self) -> str:
        return (
            f"AttributeTriples({len(self.triples):,} triples, {len(self.attribute_names):,} "
            f"attributes, {len(self.values):,} values)"
        )

    def __len__(self) -> int:
        return len(self.triples)

    def kind(self, value: int) -> Kind:
        """Return the language and the datatype of a value."""
        return self.kind_names[int(self.kinds[value])]

    def relabelled(self, new_ids: IntArray) -> "AttributeTriples":
        """Return the triples in which entity ``i`` has the id ``new_ids[i]``, or is left out."""
        entities, names, values = self.triples[new_ids[self.triples[:, 0]] >= 0].T
        used = np.zeros(len(self.values), dtype=bool)
        used[values] = True
        triples = np.stack(
            [new_ids[entities], names, np.cumsum(used)[values] - 1], axis=1
        )
        return replace(
            self,
            triples=triples[np.lexsort(triples.T[::-1])],
            values=list(compress(self.values, used.tolist())),
            kinds=self.kinds[used],
        )


def chosen_labels(
    attributes: AttributeTriples,
    num_entities: int,
    language: str | None = None,
    label_attributes: Sequence[str] = LABEL_ATTRIBUTES,
) -> list[str]:
    """Return the label of each entity, or an empty text for entities without a label.

    The order of ``label_attributes`` decides first, then the language: the given language, no
    language, English, and the other languages in alphabetical order.

    Args:
        attributes: The literals of the graph.
        num_entities: The number of entities of the graph.
        language: The preferred language tag, such as ``de``.
        label_attributes: Attributes that name an entity, in order of preference.
    """
    # the first place of a name counts, if it occurs twice
    places = {
        name: place for place, name in reversed(list(enumerate(label_attributes)))
    }
    ranks = [places.get(name, -1) for name in attributes.attribute_names]
    by_attribute = np.array(ranks, dtype=np.int64)
    wanted = by_attribute[attributes.triples[:, 1]] >= 0
    entities, names, values = attributes.triples[wanted].T
    tags = [kind.language for kind in attributes.kind_names]
    preferred = {"": 1, "en": 2} | ({language.lower(): 0} if language else {})
    by_tag = {tag: place for place, tag in enumerate(sorted(set(tags)), 3)} | preferred
    by_kind = np.array([by_tag[tag] for tag in tags], dtype=np.int64)[
        attributes.kinds[values]
    ]
    order = np.lexsort((values, by_kind, by_attribute[names], entities))
    labels = [""] * num_entities
    entities, first = np.unique(entities[order], return_index=True)
    for entity, value in zip(
        entities.tolist(), values[order][first].tolist(), strict=True
    ):
        labels[entity] = " ".join(attributes.values[value].split())
    return labels


_ESCAPE = re.compile(r'\\(?:([tbnrf"\'\\])|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))')
_SHORT = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}


def literal_parts(term: str) -> tuple[str, Kind]:
    """Return the text of a literal, and its language and datatype.

    Args:
        term: The literal as the parser writes it, without the datatype ``xsd:string``.
    """
    end = term.rindex('"')
    text = term[1:end]
    suffix = term[end + 1 :]
    if "\\" in text:
        text = _ESCAPE.sub(_character, text)
    return text, _kind(suffix)


@lru_cache(maxsize=4096)
def _kind(suffix: str) -> Kind:
    """Return language and datatype from the suffix. Files repeat few suffixes, so cache them."""
    if not suffix:
        return PLAIN
    if suffix.startswith("@"):
        return Kind(language=suffix[1:].lower())
    return Kind(datatype=suffix[3:-1])


def plain_text(term: str) -> tuple[str, Kind]:
    """Return the cell of a table as a literal without a language and a datatype."""
    return term, PLAIN


def _character(escape: re.Match[str]) -> str:
    short, four, eight = escape.groups()
    if short is not None:
        return _SHORT.get(short, short)
    return chr(int(four or eight, 16))
