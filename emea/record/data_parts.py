"""The graphs and links of a run, as its record describes them: place, digest and role."""

import hashlib

from omegaconf import DictConfig, OmegaConf

from emea.data.arrays import IntArray
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair, graph_checksum
from emea.data.split import Split
from emea.record.run_record import DataPart


def data_parts(
    config: DictConfig, pair: GraphPair, split: Split
) -> tuple[DataPart, ...]:
    """Return both graphs, and the links for training, validation and test if there are any.

    Args:
        config: The configuration of the run, which names the files.
        pair: The graphs.
        split: The split of the links. Test links are counted and digested, and used for nothing
            else.
    """
    known = split.supervision
    links = {
        "train links": (known.train, ("links",)),
        "validation links": (known.validation, ("links",)),
        "test links": (split.test, ("test_links", "links")),
    }
    parts = [
        _graph_part(config, pair.name, "source", pair.source),
        _graph_part(config, pair.name, "target", pair.target),
    ]
    for role, (rows, keys) in links.items():
        if len(rows):
            place = _place(config, keys, pair.name)
            sizes = {"num_links": len(rows)}
            parts.append(
                DataPart(role, f"{pair.name} {role}", place, _digest(rows), sizes)
            )
    return tuple(parts)


def _graph_part(
    config: DictConfig, pair: str, side: str, graph: KnowledgeGraph
) -> DataPart:
    sizes = {
        "num_entities": graph.num_entities,
        "num_relations": graph.num_relations,
        "num_triples": graph.num_triples,
    }
    return DataPart(
        role=f"{side} graph",
        name=f"{pair} {side} graph",
        place=_place(config, (side,), pair),
        digest=graph_checksum(graph),
        sizes=sizes,
    )


def _place(config: DictConfig, keys: tuple[str, ...], otherwise: str) -> str:
    """Return the first setting of the data that names a file, or else the folder of the data."""
    for key in (*keys, "folder", "division"):
        value = OmegaConf.select(config, f"data.{key}")
        if value:
            return str(value)
    return otherwise


def _digest(links: IntArray) -> str:
    """Return the SHA-256 of links in their order."""
    return hashlib.sha256(links.astype("<i8").tobytes()).hexdigest()
