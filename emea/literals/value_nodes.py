"""Turns the values of a graph into nodes, one for each distinct normal form.

The steps of the normal form, in this order:

1. Unicode NFKC, then case folding. White space is collapsed to single spaces and trimmed.
2. A date or a time (``xsd:date``, ``xsd:dateTime``, or text of that form) becomes ``YYYY-MM-DD``.
3. A number becomes its shortest decimal form: ``1.50``, ``+1.5`` and ``1.5E0`` become ``1.5``. Text
   with a leading zero, such as a postal code, stays text unless its datatype is numeric.
4. A telephone-like code, at least seven digits with separators between them, keeps its digits only.
5. Apostrophes are removed, other punctuation becomes a space: ``St. John's`` becomes ``st johns``.

Symbols such as ``+`` and ``#`` stay: *C++* is not *C#*.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

import numpy as np

from emea.data.arrays import FloatArray, IntArray
from emea.data.attributes import PLAIN, AttributeTriples, Kind
from emea.data.formats.triple_collector import distinct_triples
from emea.data.graph import KnowledgeGraph

XSD = "http://www.w3.org/2001/XMLSchema#"
NUMERIC = frozenset(
    XSD + name
    for name in (
        *("integer", "int", "long", "short", "byte", "decimal", "double", "float"),
        *("nonNegativeInteger", "positiveInteger", "unsignedInt", "unsignedLong"),
        *("unsignedShort", "unsignedByte", "negativeInteger", "nonPositiveInteger"),
    )
)

_DATE = re.compile(
    r"(-?\d{4,})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
    r"(?:[ t]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?(?:z|[+-]\d\d:\d\d)?"
)
_NUMBER = re.compile(r"[+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d{1,3})?")
_TYPED_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,3})?")
_CODE = re.compile(r"\+?[\d(][\d\s()./\-]*\d")
_SEPARATORS = re.compile(r"\D+")
_APOSTROPHES = re.compile("['`\u00b4\u02bc\u2018\u2019]")
_PUNCTUATION = re.compile(
    '[\\s.,;:!?"()\\[\\]{}/\\\\_\\-\u2010-\u2015\u00ab\u00bb\u201c-\u201e\u2026\u00b7\u2022'
    "\u3001\u3002\u30fb\u300c-\u300f]+"
)
LEAST_CODE_DIGITS = 7


def normalised_value(text: str, kind: Kind = PLAIN) -> str:
    """Return the normal form of a literal, which is empty if the text is only punctuation.

    Args:
        text: The lexical form of the literal.
        kind: Its language and datatype.
    """
    if text.isascii() and text.isalpha():
        return text.lower()
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    if any(map(str.isdigit, folded)):
        found = _date_or_number(folded, kind.datatype in NUMERIC)
        if found is not None:
            return found
    return _PUNCTUATION.sub(" ", _APOSTROPHES.sub("", folded)).strip()


def _date_or_number(text: str, is_numeric: bool) -> str | None:
    """Return the normal form of a date, number or telephone-like code, or ``None``."""
    if (date := _DATE.fullmatch(text)) is not None:
        return "-".join(date.groups())
    if (_TYPED_NUMBER if is_numeric else _NUMBER).fullmatch(text):
        try:
            number = format(Decimal(text), "f")
        except InvalidOperation:
            return text
        number = number.rstrip("0").rstrip(".") if "." in number else number
        return "0" if number in ("-0", "") else number.removeprefix("+")
    if _CODE.fullmatch(text):
        digits = _SEPARATORS.sub("", text)
        if len(digits) >= LEAST_CODE_DIGITS:
            return digits
    return None


@dataclass(frozen=True, eq=False)
class ValueNodes:
    """The distinct values of one graph.

    Args:
        keys: The normal form of each value, in the order of the nodes.
        texts: One spelling of each value, to show.
        triples: ``[num_triples, 3]`` distinct triples of entity, attribute and value node.
        attribute_functionality: ``[num_attributes]`` inverse functionality of each attribute:
            distinct values over triples.
        num_holders: ``[num_nodes]`` number of entities that have the value.
        languages: The language of each value, empty if it has none or several.
        kinds: ``[num_nodes]`` the kind of these entities; 0 if entities have no kinds.
        attribute_names: The name of each attribute.
    """

    keys: list[str]
    texts: list[str]
    triples: IntArray
    attribute_functionality: FloatArray
    num_holders: IntArray
    languages: list[str]
    kinds: IntArray
    attribute_names: Sequence[str]

    def local_weight(self) -> FloatArray:
        """Return ``[num_nodes]`` a weight of at most 1 for each value.

        The functionality of an attribute is a mean over its values. A value that many entities
        share identifies less. The product of this weight and the mean functionality of the value's
        attributes is at most one over the number of entities that have the value.
        """
        nodes = self.triples[:, 2]
        share = self.attribute_functionality[self.triples[:, 1]]
        total = np.bincount(nodes, weights=share, minlength=len(self.keys))
        mean = total / np.maximum(np.bincount(nodes, minlength=len(self.keys)), 1)
        promised = mean * np.maximum(self.num_holders, 1)
        return np.minimum(1.0, 1.0 / np.maximum(promised, 1e-12))


KIND_MARKS = ("", " \u2986", " \u2988")
"""What the keys of values of individuals, classes and properties end with. No normal form does."""


def value_nodes(
    attributes: AttributeTriples, entity_kinds: IntArray | None = None
) -> ValueNodes:
    """Return a node for each distinct normal form of the values, without empty ones.

    Args:
        attributes: The literals of a graph.
        entity_kinds: The kind of each entity, if values of different kinds of entities never match.
    """
    kinds = np.zeros(len(attributes.values), dtype=np.int64)
    if entity_kinds is not None:
        attributes, kinds = _split_by_kind(attributes, entity_kinds)
    numbers: dict[str, int] = {}
    texts: list[str] = []
    languages: list[str] = []
    spoken = [kind.language.partition("-")[0] for kind in attributes.kind_names]
    node_kinds: list[int] = []
    node_of = np.full(len(attributes.values), -1, dtype=np.int64)
    columns = zip(
        attributes.values, attributes.kinds.tolist(), kinds.tolist(), strict=True
    )
    for value, (text, form, kind) in enumerate(columns):
        if key := normalised_value(text, attributes.kind_names[form]):
            number = numbers.setdefault(key + KIND_MARKS[kind], len(numbers))
            node_of[value] = number
            language = spoken[form]
            if number == len(texts):
                texts.append(text)
                languages.append(language)
                node_kinds.append(kind)
            elif languages[number] != language:
                languages[number] = ""
    triples = attributes.triples.copy()
    triples[:, 2] = node_of[triples[:, 2]]
    triples = distinct_triples(triples[triples[:, 2] >= 0])
    num_attributes = len(attributes.attribute_names)
    sizes = np.bincount(triples[:, 1], minlength=num_attributes)
    seen = np.unique(triples[:, 1] * max(1, len(numbers)) + triples[:, 2])
    distinct = np.bincount(seen // max(1, len(numbers)), minlength=num_attributes)
    held = np.unique(triples[:, 2] * (triples[:, 0].max(initial=0) + 1) + triples[:, 0])
    holders = np.bincount(
        held // (triples[:, 0].max(initial=0) + 1), minlength=len(numbers)
    )
    functionality = distinct / np.maximum(sizes, 1)
    kinds = np.array(node_kinds, dtype=np.int64)
    names = attributes.attribute_names
    return ValueNodes(
        list(numbers), texts, triples, functionality, holders, languages, kinds, names
    )


def _split_by_kind(
    attributes: AttributeTriples, entity_kinds: IntArray
) -> tuple[AttributeTriples, IntArray]:
    """Return the literals with a value of its own for each kind of entity, and these kinds."""
    triples = attributes.triples.copy()
    num_kinds = len(KIND_MARKS)
    codes = triples[:, 2] * num_kinds + entity_kinds[triples[:, 0]]
    distinct, places = np.unique(codes, return_inverse=True)
    values = distinct // num_kinds
    triples[:, 2] = places
    texts = [attributes.values[value] for value in values.tolist()]
    split = replace(
        attributes, triples=triples, values=texts, kinds=attributes.kinds[values]
    )
    return split, distinct % num_kinds


def extended_graph(graph: KnowledgeGraph, nodes: ValueNodes) -> KnowledgeGraph:
    """Return the graph with value nodes after the entities and attributes after the relations."""
    shift = np.array([0, graph.num_relations, graph.num_entities])
    relations = [
        graph.relation_name(relation) for relation in range(graph.num_relations)
    ]
    labels = graph.labels or [""] * graph.num_entities
    return KnowledgeGraph(
        np.concatenate([graph.triples, nodes.triples + shift]),
        graph.num_entities + len(nodes.keys),
        graph.num_relations + len(nodes.attribute_names),
        [*graph.all_entity_names, *(f'"{text}"' for text in nodes.texts)],
        [*relations, *nodes.attribute_names],
        labels=[*labels, *([""] * len(nodes.keys))],
    )
