"""Licences of published mappings, by their SPDX identifiers."""

import re

from emea.data.names import entity_iri
from emea.errors import ConfigError

CREATIVE_COMMONS = "https://creativecommons.org"

LICENSES = {
    "cc0": f"{CREATIVE_COMMONS}/publicdomain/zero/1.0/",
    "cc0-1.0": f"{CREATIVE_COMMONS}/publicdomain/zero/1.0/",
    "odbl-1.0": "https://opendatacommons.org/licenses/odbl/1-0/",
    "odc-by-1.0": "https://opendatacommons.org/licenses/by/1-0/",
    "pddl-1.0": "https://opendatacommons.org/licenses/pddl/1-0/",
    "dl-de-by-2.0": "https://www.govdata.de/dl-de/by-2-0",
    "dl-de-zero-2.0": "https://www.govdata.de/dl-de/zero-2-0",
    "mit": "https://opensource.org/license/mit",
    "apache-2.0": "https://www.apache.org/licenses/LICENSE-2.0",
    "bsd-2-clause": "https://opensource.org/license/bsd-2-clause",
    "bsd-3-clause": "https://opensource.org/license/bsd-3-clause",
}
"""Licences by their SPDX identifiers in small letters, except those of Creative Commons."""

_CREATIVE_COMMONS = re.compile(
    r"cc-(by|by-sa|by-nd|by-nc|by-nc-sa|by-nc-nd)-(1\.0|2\.0|2\.5|3\.0|4\.0)"
)


def license_iri(name: str | None) -> str | None:
    """Return the IRI of a licence; ``None`` if none is chosen.

    Args:
        name: An SPDX identifier such as ``CC-BY-4.0``, in which case does not matter, or an
            absolute IRI.

    Raises:
        ConfigError: If it is neither a known identifier nor an IRI.
    """
    if name is None:
        return None
    if (known := LICENSES.get(name.lower())) is not None:
        return known
    if (found := _CREATIVE_COMMONS.fullmatch(name.lower())) is not None:
        return f"{CREATIVE_COMMONS}/licenses/{found[1]}/{found[2]}/"
    # names that are not IRIs, and IRIs with characters that these may not contain, are changed
    if entity_iri(name, "", "") == name:
        return name
    raise ConfigError(
        "export.license must be an SPDX identifier such as CC0-1.0, CC-BY-4.0, CC-BY-SA-4.0, "
        f"ODbL-1.0, MIT or Apache-2.0, or the absolute IRI of a licence, got {name}."
    )
