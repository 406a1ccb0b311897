"""Metadata of data sets in Croissant 1.1: complete, and the same as the pinned sources."""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from emea.config.composition import CONF, composed, option_names
from emea.data.sources.download import GITHUB_RAW, SOURCES

NO_DATA_SET = {
    "files": "the user's own graphs",
    "part": "a part of another pair",
    "synthetic": "made by the program",
    "openea": "openea_d_y by default, or another folder",
    "zh": "short for dbp15k_zh",
    "ja": "short for dbp15k_ja",
    "fr": "short for dbp15k_fr",
}
OPTIONS = sorted(set(option_names("data")) - set(NO_DATA_SET))
PINNED = json.loads(SOURCES.read_text(encoding="utf-8"))
REQUIRED = (
    "name",
    "description",
    "license",
    "url",
    "creator",
    "datePublished",
    "citeAs",
)


def metadata(option: str) -> dict[str, Any]:
    file = CONF / "data" / f"{option}.croissant.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def size_of(file: dict[str, Any]) -> int:
    number, unit = file["contentSize"].split()
    assert unit == "B"
    return int(number)


def test_every_data_set_has_metadata_and_nothing_else_has() -> None:
    files = (CONF / "data").glob("*.croissant.json")
    assert (
        sorted(file.name.removesuffix(".croissant.json") for file in files) == OPTIONS
    )
    assert set(NO_DATA_SET) <= set(option_names("data"))


@pytest.mark.parametrize("option", OPTIONS)
def test_metadata_is_complete(option: str) -> None:
    found = metadata(option)
    assert found["conformsTo"] == "http://mlcommons.org/croissant/1.1"
    assert found["@type"] == "sc:Dataset" and found["@context"]["cr"]
    assert all(found[name] for name in REQUIRED)
    assert found["alternateName"] == option
    assert found["url"].startswith("https://")
    first = (
        (CONF / "data" / f"{option}.yaml").read_text(encoding="utf-8").split("\n")[0]
    )
    assert found["description"].startswith(first.removeprefix("# "))
    ids = [file["@id"] for file in found["distribution"]]
    assert ids and len(set(ids)) == len(ids)
    for file in found["distribution"]:
        assert file["@type"] == "cr:FileObject" and file["encodingFormat"]
        assert file["contentUrl"].startswith("https://")
        if "sha256" in file:
            assert re.fullmatch("[0-9a-f]{64}", file["sha256"])
        else:  # what identifies the content instead is said
            identifier = file.get("identifier", "")
            is_named = re.fullmatch("git-blob:[0-9a-f]{40}", identifier)
            assert (
                is_named
                or "not known" in found["description"]
                or ("not their digests" in found["description"])
            )


@pytest.mark.parametrize("option", [one for one in OPTIONS if one in PINNED])
def test_files_are_those_of_the_pinned_sources(option: str) -> None:
    source = PINNED[option]
    files = {file["@id"]: file for file in metadata(option)["distribution"]}
    assert files.keys() == source["files"].keys()
    for name, facts in source["files"].items():
        place = f"{source['github']}/{source['commit']}/{facts['path']}"
        assert files[name]["contentUrl"] == f"{GITHUB_RAW}/{place}"
        assert files[name].get("sha256") == facts.get("sha256")
        blob = facts.get("git_blob_sha1")
        assert files[name].get("identifier") == (blob and f"git-blob:{blob}")
        if "bytes" in facts:
            assert size_of(files[name]) == facts["bytes"]


def test_data_sets_that_are_downloaded_are_pinned() -> None:
    for option in OPTIONS:
        download = composed([f"data={option}"]).data.get("download")
        assert download in (None, option)
        assert (option in PINNED) == (download is not None)


@pytest.mark.data
@pytest.mark.parametrize("option", OPTIONS)
def test_size_and_digest_of_the_files_at_hand(option: str) -> None:
    root = Path(os.environ.get("EMEA_DATA", "data"))
    folder = root / composed([f"data={option}"]).data.folder
    checked = 0
    for file in metadata(option)["distribution"]:
        path = folder / file["name"]
        if path.is_file() and "sha256" in file:
            content = path.read_bytes()
            assert size_of(file) == len(content)
            assert file["sha256"] == hashlib.sha256(content).hexdigest(), path
            checked += 1
    if not checked:
        pytest.skip(f"no file of {option} in {root}")
