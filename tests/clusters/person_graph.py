"""The RDF graph of OAEI 2010 persons1 with copies of people: four kinds of entities.

People have addresses, suburbs and states. The graph has each suburb and state once for each person,
so the truth has duplicates without copies, too: states and suburbs with the same name. Those
without a name are only the same as themselves.
"""

import random
from pathlib import Path

from emea.clusters.noisy_copies import CHANGED, MISSING, changed
from emea.data.graph import KnowledgeGraph
from emea.data.sources.own_files import read_own_graph
from emea.data.sources.settings import OwnFilesSettings

from .people import joined

Pairs = set[tuple[int, int]]
COPY = "-copy"
KINDS = ("Person", "Address", "Suburb", "State")


def with_copies(source: Path, path: Path, num_copies: int, seed: int) -> KnowledgeGraph:
    """The graph with noisy copies of some people, who live at the same addresses."""
    rng = random.Random(seed)
    lines = source.read_text(encoding="utf-8").splitlines()
    triples = [line.removesuffix(" .").split(" ", 2) for line in lines]
    people = sorted({head for head, _, _ in triples if "-Person" in head})
    chosen = set(rng.sample(people, num_copies))
    for head, relation, value in list(triples):
        if head not in chosen:
            continue
        if value.startswith('"'):
            if rng.random() < MISSING:
                continue
            if rng.random() < CHANGED:
                text = changed(value[1:-1], rng).replace('"', "").replace("\\", "")
                value = f'"{text}"'
        triples.append([f"{head[:-1]}{COPY}>", relation, value])
    path.write_text("".join(f"{' '.join(one)} .\n" for one in triples), "utf-8")
    settings = OwnFilesSettings(keep_literals=True, keep_isolated=True)
    return read_own_graph(path, settings)[0]


def kind_of(name: str) -> str:
    """The kind of an entity, empty for a class."""
    return next((kind for kind in KINDS if f"-{kind}" in name), "")


def true_pairs(graph: KnowledgeGraph) -> Pairs:
    """The pairs of people, suburbs and states that are the same."""
    names = graph.all_entity_names
    same: dict[tuple[str, str], list[int]] = {}
    texts = [""] * len(names)
    assert graph.attributes is not None
    for entity, attribute, value in graph.attributes.triples.tolist():
        if graph.attributes.attribute_names[attribute].endswith("#name"):
            texts[entity] = graph.attributes.values[value]
    for entity, name in enumerate(names):
        own = texts[entity] or name.removesuffix(COPY)
        same.setdefault((kind_of(name), own), []).append(entity)
    return joined(same.values())


def of_kind(graph: KnowledgeGraph, pairs: Pairs, kind: str) -> Pairs:
    """The pairs of entities of one kind."""
    is_kind = [kind_of(name) == kind for name in graph.all_entity_names]
    return {pair for pair in pairs if is_kind[pair[0]] and is_kind[pair[1]]}
