"""From what a person types to an entity."""

import difflib
from collections import defaultdict
from urllib.parse import unquote

from emea.data.graph import KnowledgeGraph
from emea.errors import DataError

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
