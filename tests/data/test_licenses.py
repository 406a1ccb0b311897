"""Licences by identifier or IRI."""

import pytest

from emea.cli.main import main as emea
from emea.data.licenses import LICENSES, license_iri
from emea.errors import ConfigError

CC = "https://creativecommons.org"


@pytest.mark.parametrize(
    ("name", "iri"),
    [
        ("cc0", f"{CC}/publicdomain/zero/1.0/"),
        ("CC0-1.0", f"{CC}/publicdomain/zero/1.0/"),
        ("CC-BY-4.0", f"{CC}/licenses/by/4.0/"),
        ("CC-BY-SA-3.0", f"{CC}/licenses/by-sa/3.0/"),
        ("cc-by-nc-nd-4.0", f"{CC}/licenses/by-nc-nd/4.0/"),
        ("ODbL-1.0", "https://opendatacommons.org/licenses/odbl/1-0/"),
        ("MIT", "https://opensource.org/license/mit"),
        ("https://a.org/licence", "https://a.org/licence"),
        ("urn:x:licence", "urn:x:licence"),
    ],
)
def test_a_licence_has_an_identifier_or_an_iri(name: str, iri: str) -> None:
    assert license_iri(name) == iri


def test_no_licence_and_the_iris_of_all_identifiers() -> None:
    assert license_iri(None) is None
    assert all(license_iri(iri) == iri for iri in LICENSES.values())


@pytest.mark.parametrize(
    "name", ["mine", "", "CC-BY-5.0", "CC-BY-NC", "a b://x", "http://a.org/a b", "://x"]
)
def test_others_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"must be an SPDX identifier such as CC0"):
        license_iri(name)


@pytest.mark.parametrize("command", ["align", "run"])
def test_a_wrong_licence_is_refused_before_anything_is_read(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["export.license=mine", "data=files", "data.source=a", "data.target=b"]
    if command == "align":
        given = ["docs/examples/atlas.nt", "docs/examples/karte.ttl"]
        given += ["--license", "mine", "--out", "unwritten"]
    assert emea([command, *given]) == 1
    shown = capsys.readouterr()
    assert "export.license must be an SPDX identifier" in shown.err
    assert not shown.out
