"""From what the files call things to graphs with contiguous ids."""

import logging
from collections.abc import Sequence

import numpy as np

from emea.data.arrays import IntArray
from emea.data.distinct_triples import first_occurrences
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, OfficialSplit
from emea.data.tab_file import TabTable
from emea.data.vocabulary import Key, Vocabulary

log = logging.getLogger(__name__)

# Public files number linked entities alike (in DBP15K most links join id i to id i + constant),
# so ids in file order would tell the links to anything that breaks a tie by index. The seed is
# fixed: the same files give the same ids in every run, whatever the seed of the experiment.
SHUFFLE_SEED = 20_221_206


def build_graph(
    table: TabTable,
    columns: tuple[Sequence[Key], Sequence[Key], Sequence[Key]],
    entities: Vocabulary[Key],
    relations: Vocabulary[Key],
    entity_names: Sequence[str],
    relation_names: Sequence[str],
) -> KnowledgeGraph:
    """The graph of a triple file; repeated triples count once.

    Args:
        table: the file, for error messages.
        columns: its heads, relations and tails.
        entities: all entities of the graph.
        relations: all relations of the graph.
        entity_names: a name per entity.
        relation_names: a name per relation.
    """
    heads, relation_column, tails = columns
    triples = np.stack(
        [
            entities.ids(heads, table),
            relations.ids(relation_column, table),
            entities.ids(tails, table),
        ],
        axis=1,
    )
    rows = first_occurrences(triples)
    if len(rows) < len(triples):
        log.warning("%s: %d repeated triples dropped", table.label, len(triples) - len(rows))
    return KnowledgeGraph(
        triples[rows], len(entities), len(relations), entity_names, relation_names
    )


def assemble_pair(
    name: str,
    source: KnowledgeGraph,
    target: KnowledgeGraph,
    links: IntArray,
    official: OfficialSplit | None,
) -> GraphPair:
    """The pair as readers hand it out: with entity ids that carry no information."""
    pair = GraphPair(name, source, target, links, official)
    return pair.shuffled(SHUFFLE_SEED)
