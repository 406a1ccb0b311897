"""Short forms of IRIs, by prefixes that the IRIs themselves suggest."""

from collections.abc import Sequence
from itertools import takewhile

from emea.data.entity_iri import EMEA

EMEA_PREFIX = "emea"


class CompactIris:
    """Prefixes for the IRIs of one side: one for each scheme, and one for ``urn:emea:``.

    What all IRIs of a scheme begin with, up to a separator, is the prefix: it needs no knowledge
    of vocabularies, and holds for one namespace as for many.

    Args:
        iris: all there are to shorten.
        side: begins the prefixes' names, such as ``source_http``.

    Attributes:
        prefixes: what each prefix stands for.
    """

    def __init__(self, iris: Sequence[str], side: str) -> None:
        self.side = side
        by_name: dict[str, list[str]] = {}
        for iri in iris:
            if not iri.startswith(EMEA):
                # without its last character: something must be left to refer to
                by_name.setdefault(self._prefix(iri), []).append(iri[:-1])
        self.prefixes = {EMEA_PREFIX: EMEA}
        self.prefixes |= {name: _shared(starts) for name, starts in by_name.items()}

    def __call__(self, iri: str) -> str:
        """The compact form, ``prefix:rest``."""
        name = EMEA_PREFIX if iri.startswith(EMEA) else self._prefix(iri)
        return f"{name}:{iri[len(self.prefixes[name]) :]}"

    def _prefix(self, iri: str) -> str:
        # a scheme may hold a plus, the name of a prefix may not
        return f"{self.side}_{iri.partition(':')[0].replace('+', '-')}"


def _shared(starts: Sequence[str]) -> str:
    # what the first and the last have in common in the order of characters, all have
    first, last = min(starts), max(starts)
    same = takewhile(lambda both: both[0] == both[1], zip(first, last, strict=False))
    start = first[: sum(1 for _ in same)]
    return start[: max(map(start.rfind, "/#:")) + 1]
