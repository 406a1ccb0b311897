"""Short names for long ones: ``dbr:Berlin`` for ``http://dbpedia.org/resource/Berlin``."""

from collections.abc import Iterator, Mapping

from emea.data.entity_iri import own_name


class Prefixes:
    """Other ways to write a name.

    Args:
        namespaces: the beginning of names by the prefix that stands for it.
    """

    def __init__(self, namespaces: Mapping[str, str] | None = None) -> None:
        self.namespaces = dict(namespaces or {})

    def spellings(self, name: str) -> Iterator[str]:
        """The name as it stands, out of its brackets, in full, in short and out of our IRIs."""
        yield name
        if name.startswith("<") and name.endswith(">"):
            name = name[1:-1]
            yield name
        if (full := self.in_full(name)) != name:
            yield full
        if (own := own_name(full)) is not None:
            yield own
        for short, namespace in self.namespaces.items():
            if name.startswith(namespace):
                yield f"{short}:{name[len(namespace) :]}"

    def in_full(self, name: str) -> str:
        """The name with what its prefix stands for."""
        prefix, colon, rest = name.partition(":")
        return self.namespaces[prefix] + rest if colon and prefix in self.namespaces else name

    def with_others(self, others: Mapping[str, str]) -> "Prefixes":
        """Also those of a file; what was given before goes first."""
        return Prefixes({**others, **self.namespaces})
