"""An IRI for every entity, whatever the data calls it, and the way back."""

import re
from urllib.parse import quote, unquote

EMEA = "urn:emea:"
"""Where names that are no IRIs find a place."""

_IS_IRI = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*://|urn:[A-Za-z0-9][A-Za-z0-9-]{0,31}:).", re.S)
_LETTERS = "".join(
    [
        "A-Za-z0-9",
        "\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef",  # RFC 3987: ucschar
        *(f"{chr(plane << 16)}-{chr((plane << 16) + 0xFFFD)}" for plane in range(1, 14)),
        "\U000e1000-\U000efffd",
    ]
)
_MARKS = re.escape("-._~:/?@!$&'()*+,;=")
_FORBIDDEN = re.compile(f"[^{_LETTERS}{_MARKS}%]|%(?![0-9A-Fa-f]{{2}})")


def entity_iri(name: str, pair: str, side: str) -> str:
    """The name itself where it is an IRI, ``urn:emea:PAIR:SIDE:NAME`` where it is not.

    An IRI is what begins with ``scheme://`` or ``urn:namespace:``; a colon alone is too common
    in names. Characters that no IRI may hold are percent-encoded, in either case.

    Args:
        name: what the data calls the entity.
        pair: name of the data set, so that equal names of two of them stay apart.
        side: ``source`` or ``target``.
    """
    if not _IS_IRI.match(name):
        return f"{EMEA}{quote(pair, safe='')}:{side}:{quote(name, safe='')}"
    place, mark, fragment = name.partition("#")
    return f"{_encoded(place)}{mark}{_encoded(fragment)}"


def own_name(iri: str) -> str | None:
    """The name that became an IRI of ours; ``None`` where it is none."""
    parts = iri.split(":", 4)
    return unquote(parts[4]) if iri.startswith(EMEA) and len(parts) > 4 else None


def _encoded(part: str) -> str:
    return _FORBIDDEN.sub(lambda found: quote(found.group(), safe=""), part)
