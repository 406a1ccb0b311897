"""A page that shows clusters: the values of their entities side by side, and undecided pairs."""

from typing import NamedTuple

from emea.clusters.clustered import Clustered
from emea.data.names import entity_title, title_of
from emea.results.page import html_document, page_style, template_environment

MOST_CLUSTERS, MOST_PAIRS, MOST_ENTITIES = 500, 200, 50
"""Clusters and undecided pairs on the page, and entities that are shown of each cluster."""

MOST_ATTRIBUTES, MOST_VALUES, MOST_CHARACTERS = 12, 3, 120
"""Attributes in a table, values of each, and characters of a value."""

UNDECIDED = 0.1
"""Minimum probability of the pairs that are listed although they are in no cluster."""


class Shown(NamedTuple):
    """A table of the page.

    Args:
        title: Its heading.
        prob: The probability of the least probable pair that was compared.
        attributes: The columns.
        rows: The graph, name and label of each entity, and its cells.
        num_more: The number of further entities.
    """

    title: str
    prob: float
    attributes: list[str]
    rows: list[tuple[str, str, str, list[str]]]
    num_more: int


def clusters_page(found: Clustered) -> str:
    """Return the page, with the least sure clusters first."""
    least = dict.fromkeys(range(1, len(found.rows) + 1), 1.0)
    undecided = []
    for first, second, prob in found.joined_pairs(UNDECIDED):
        if found.is_joined(first, second):
            number = found.numbers[first]
            least[number] = min(least[number], prob)
        else:
            undecided.append((first, second, prob))
    values = _Values(found)
    order = sorted(least, key=lambda number: (least[number], number))
    clusters = [
        values.table(f"Cluster {number}", least[number], found.rows[number - 1])
        for number in order[:MOST_CLUSTERS]
    ]
    pairs = [
        values.table(f"Undecided pair {place}", prob, [first, second])
        for place, (first, second, prob) in enumerate(undecided[:MOST_PAIRS], 1)
    ]
    title = f"Clusters of {found.name}"
    body = (
        template_environment("emea.clusters")
        .get_template("clusters.html")
        .render(
            title=title,
            num_entities=len(found.clusters),
            num_clusters=len(found.rows),
            num_members=len(found.numbers),
            threshold=found.threshold,
            has_sides=len(found.graphs) > 1,
            clusters=clusters,
            pairs=pairs,
            num_more_clusters=len(order) - len(clusters),
            num_more_pairs=len(undecided) - len(pairs),
        )
    )
    return html_document(title, body, page_style())


class _Values:
    """Looks up the values of entities.

    Args:
        found: The clusters.
    """

    def __init__(self, found: Clustered) -> None:
        self.found = found
        self._cells: dict[int, dict[str, list[str]]] = {}
        shown = {one for row in found.rows for one in row[:MOST_ENTITIES]}
        shown |= {one for pair in found.joined_pairs(UNDECIDED) for one in pair[:2]}
        for side, start in zip(found.graphs, found.starts, strict=False):
            self._read(side, start, shown)

    def _read(self, side: str, start: int, shown: set[int]) -> None:
        """Keep the values of the entities of one graph that are shown."""
        graph = self.found.graphs[side]
        if (held := graph.attributes) is not None:
            for entity, attribute, value in held.triples.tolist():
                if start + entity in shown:
                    name = title_of(held.attribute_names[attribute])
                    self._add(start + entity, name, held.values[value])
        for head, relation, tail in graph.triples.tolist():
            if start + head in shown:
                text = entity_title(graph, tail)
                self._add(start + head, title_of(graph.relation_name(relation)), text)

    def _add(self, entity: int, name: str, text: str) -> None:
        texts = self._cells.setdefault(entity, {}).setdefault(name, [])
        if len(texts) < MOST_VALUES:
            cut = text[:MOST_CHARACTERS]
            texts.append(cut if len(text) <= MOST_CHARACTERS else f"{cut}…")

    def table(self, title: str, prob: float, entities: list[int]) -> Shown:
        """Return the values of entities side by side."""
        shown = entities[:MOST_ENTITIES]
        cells = [self._cells.get(one, {}) for one in shown]
        names = list(dict.fromkeys(name for row in cells for name in row))
        names = names[:MOST_ATTRIBUTES]
        rows = [
            (
                self.found.member(one).side,
                self.found.entity_name(one),
                self.found.label(one),
                ["; ".join(row.get(name, ())) for name in names],
            )
            for one, row in zip(shown, cells, strict=True)
        ]
        return Shown(title, prob, names, rows, len(entities) - len(shown))
