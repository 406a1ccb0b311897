"""The Reconciliation Service API 0.2 of the W3C Entity Reconciliation Community Group."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from emea.data.names import EMEA, title_of
from emea.explain.explanation import beginning
from emea.explain.facts import Fact, Facts
from emea.literals.name_index import Found, NameIndex
from emea.literals.value_nodes import normalised_value
from emea.serve.limits import Deadline, Limits, RequestError

VERSIONS = ["0.1", "0.2"]

USUAL_RESULTS = 5
"""Candidates of a query that does not say how many it wants."""

FURTHER = 10
"""Entities that are looked at for each candidate, if a query names properties."""

NAME_WEIGHT = 2
"""The similarity of names counts this many times as much as the mean of all properties. Ours."""

LEAST_SUGGESTED = 0.3
"""Similarity from which an entity is suggested whose name does not start with the text. Ours."""

MOST_DEFAULT_TYPES = 10

PREVIEW_SIZE = {"width": 430, "height": 300}

Json = dict[str, Any]


class Reconciliation:
    """Reconciles names with the entities of one graph.

    Args:
        facts: The graph.
        space: The name of the pair and the side of the graph, as in ``atlas:target``.
        limits: Limits of a request.
    """

    def __init__(self, facts: Facts, space: str, limits: Limits) -> None:
        self.facts = facts
        self.space = space
        self.limits = limits
        named = [
            (entity, title)
            for entity in range(facts.graph.num_entities)
            for title in dict.fromkeys(facts.all_titles(entity))
        ]
        self._index = NameIndex(*map(list, zip(*named, strict=True)))

    def manifest(self, base: str) -> Json:
        """Return what the service offers.

        Args:
            base: The address of the service, without a slash at its end.
        """
        suggest = {
            kind: {"service_url": base, "service_path": f"/suggest/{kind}"}
            for kind in ("entity", "property", "type")
        }
        page = f"{base}/preview?id={{{{id}}}}"
        properties = {"service_url": base, "service_path": "/extend/properties"}
        manifest: Json = {
            "versions": VERSIONS,
            "name": f"emea: {self.space}",
            "identifierSpace": f"{EMEA}{self.space}",
            "schemaSpace": f"{EMEA}{self.space}:schema",
            "view": {"url": page},
            "preview": {"url": page, **PREVIEW_SIZE},
            "suggest": suggest,
            "extend": {"propose_properties": properties, "property_settings": []},
        }
        types = self.facts.all_types[:MOST_DEFAULT_TYPES]
        if types:
            manifest["defaultTypes"] = [self._reference(one) for one in types]
        return manifest

    def answer(self, queries: Mapping[str, Any]) -> Json:
        """Return the candidates of each query of a batch.

        Raises:
            RequestError: If the batch or a query is not valid, or it takes too long.
        """
        if len(queries) > self.limits.num_queries:
            raise RequestError(
                413,
                f"The batch has {len(queries):,} queries. Send at most "
                f"{self.limits.num_queries:,} at a time.",
            )
        deadline = Deadline(self.limits.seconds)
        answers = {}
        for key, query in queries.items():
            deadline.check()
            checked = Query.of(key, query, self.limits.num_values)
            answers[key] = {"result": self._candidates(checked)}
        return answers

    def suggest(self, kind: str, prefix: str) -> Json:
        """Return entities, properties or types whose name starts with a text or contains it."""
        most = self.limits.num_results
        if kind == "entity":
            starting = self._index.starting_with(prefix, most)
            similar = self._index.search(prefix, USUAL_RESULTS)
            near = [one.entity for one in similar if one.similarity >= LEAST_SUGGESTED]
            entities = list(dict.fromkeys([*starting, *near]))[:most]
            return {"result": [self._reference(one) for one in entities]}
        if kind == "type":
            named = [self._reference(one) for one in self.facts.all_types]
        else:
            named = list(map(_property, self.facts.properties))
        wanted = prefix.casefold()
        found = (one for one in named if wanted in one["name"].casefold())
        return {"result": list(islice(found, most))}

    def properties(self, type_name: str, limit: str) -> Json:
        """Return the properties that the entities of a type have, the most frequent first."""
        number = min(_number(limit), self.limits.num_results)
        proposed = list(map(_property, self.facts.properties[:number]))
        return {"type": type_name, "limit": number, "properties": proposed}

    def extend(self, wanted: Json) -> Json:
        """Return the values of properties of entities.

        Raises:
            RequestError: If the request is not valid, too large, or it takes too long.
        """
        ids = _list_of(wanted.get("ids"), str, "ids must be a list of texts.")
        listed = wanted.get("properties")
        listed = _list_of(listed, dict, "properties must be a list of objects.")
        names = [one.get("id") for one in listed]
        _list_of(names, str, "Each property must have an id.")
        if max(len(ids), len(names)) > self.limits.num_queries:
            most = f"{self.limits.num_queries:,}"
            raise RequestError(
                413, f"Send at most {most} ids and properties at a time."
            )
        deadline = Deadline(self.limits.seconds)
        rows: Json = {}
        for name in ids:
            rows[name] = {}
            for one in names:
                deadline.check()
                rows[name][one] = self._cells(name, one)
        return {"meta": list(map(_property, names)), "rows": rows}

    def _cells(self, name: str, wanted: str) -> list[Json]:
        entity = self.facts.entity(name)
        if entity is None:
            return []
        values = self.facts.values(entity, wanted, self.limits.num_values)
        return [
            {"str": one.text} if one.other is None else self._reference(one.other)
            for one in values
        ]

    def _reference(self, entity: int) -> Json:
        return {"id": self.facts.names[entity], "name": self.facts.title(entity)}

    def _candidates(self, query: "Query") -> list[Json]:
        """Return the best candidates of one query."""
        number = min(query.limit, self.limits.num_results)
        has_types = None
        if query.types:
            needs_all = query.type_strict == "all"
            has_types = self.facts.having_types(query.types, needs_all)
        entity = self.facts.entity(query.text)
        if entity is not None:  # the text is the name of an entity
            found = [Found(entity, 1.0, True)]
        else:
            # properties may prefer names that are less similar
            most = FURTHER * number if query.properties else number
            among = None if query.type_strict == "should" else has_types
            found = self._index.search(query.text, most, among)
        is_only = sum(one.is_equal for one in found) == 1
        candidates = []
        for one in found:
            fits = has_types is None or bool(has_types[one.entity])
            if not fits and query.type_strict != "should":
                continue
            agreement = self._agreement(one.entity, query.properties)
            candidate = self._candidate(one, agreement)
            is_match = one.is_equal and is_only and fits and agreement in (None, 1.0)
            candidates.append({**candidate, "match": is_match})
        candidates.sort(key=lambda one: -one["score"])
        return candidates[:number]

    def _candidate(self, found: Found, agreement: float | None) -> Json:
        """Return an entity with its score, from 0 to 100, and what the score consists of."""
        features = {"name_similarity": found.similarity}
        score = found.similarity
        if agreement is not None:
            features["property_agreement"] = agreement
            score = (NAME_WEIGHT * score + agreement) / (NAME_WEIGHT + 1)
        return {
            **self._reference(found.entity),
            "type": list(map(self._reference, self.facts.types(found.entity))),
            "score": round(100 * score, 4),
            "features": [
                {"id": name, "value": round(value, 6)}
                for name, value in features.items()
            ],
        }

    def _agreement(
        self, entity: int, given: Sequence[tuple[str, set[str]]]
    ) -> float | None:
        """Return the share of the given properties with an equal value.

        Properties that the entity lacks do not count; ``None`` if it has none of them.
        """
        agree = []
        for name, forms in given:
            values = self.facts.values(entity, name, self.limits.num_values)
            if values:
                agree.append(any(form in forms for form in self._forms(values)))
        return sum(agree) / len(agree) if agree else None

    def _forms(self, values: Iterable[Fact]) -> Iterator[str]:
        for one in values:
            yield normalised_value(one.text)
            if one.other is not None:
                yield self.facts.names[one.other]


class Query(NamedTuple):
    """A query whose fields have the types that the API prescribes.

    Args:
        text: The name to find.
        limit: Maximum number of candidates.
        types: Types of which a candidate has one, or all with ``type_strict`` ``all``.
        type_strict: ``any``, ``all``, or ``should`` for types that may be missing.
        properties: Properties with the normal forms of their values.
    """

    text: str
    limit: int
    types: frozenset[str]
    type_strict: str
    properties: Sequence[tuple[str, set[str]]]

    @classmethod
    def of(cls, key: str, query: Any, most: int) -> "Query":
        """Read a query, which may have a number of types and properties.

        Raises:
            RequestError: If it is not valid, or has too many types or properties.
        """
        wrong = f"Query {beginning(key)} is not valid: "
        if not isinstance(query, dict):
            raise RequestError(400, f"{wrong}it must be an object.")
        text = query.get("query", "")
        if not isinstance(text, str):
            raise RequestError(400, f"{wrong}query must be a text.")
        types = query.get("type") or []
        types = [types] if isinstance(types, str) else types
        _list_of(types, str, f"{wrong}type must be a text or a list of texts.")
        given = query.get("properties") or []
        _list_of(given, dict, f"{wrong}properties must be a list of objects.")
        if max(len(given), len(types)) > most:
            raise RequestError(413, f"{wrong}it may have {most} types and properties.")
        if not all(isinstance(one.get("pid"), str) and "v" in one for one in given):
            raise RequestError(400, f"{wrong}each property must have a pid and a v.")
        return cls(
            text,
            _number(query.get("limit")),
            frozenset(types),
            str(query.get("type_strict", "any")),
            [(one["pid"], set(_forms_of(one["v"]))) for one in given],
        )


def _property(name: str) -> Json:
    return {"id": name, "name": title_of(name)}


def _forms_of(value: Any) -> Iterator[str]:
    """Yield the normal forms of a value of a query, or of each value of a list."""
    for one in value if isinstance(value, list) else [value]:
        if isinstance(one, dict):  # an entity that was reconciled before
            yield str(one.get("id"))
            yield normalised_value(beginning(str(one.get("name", ""))))
        else:
            yield normalised_value(beginning(str(one)))


def _list_of(value: Any, kind: type, message: str) -> list[Any]:
    """Return a list of values of one type, or raise an error."""
    if not isinstance(value, list) or not all(isinstance(one, kind) for one in value):
        raise RequestError(400, message)
    return value


def _number(limit: Any) -> int:
    """Return a number of results, from a query or an address."""
    try:
        return max(1, int(limit))
    except (TypeError, ValueError, OverflowError):
        return USUAL_RESULTS
