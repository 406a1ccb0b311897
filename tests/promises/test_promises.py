"""Nothing that users rely on goes silently."""

from pathlib import Path

import pytest

from .promises import HERE, RELEASED, ROOT, Lists, collected, stored

NAMES = ("commands", "settings", "files", "columns", "keys", "log_lines", "pages")


def unannounced(before: Lists, now: Lists, changelog: str) -> list[str]:
    """Return the entries that are gone and that no line of the changelog contains."""
    text = " ".join(changelog.split())
    gone = [
        one
        for name, entries in before.items()
        for one in entries
        if one not in now[name]
    ]
    return [entry for entry in gone if f"`{entry}`" not in text]


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Lists:
    return collected(tmp_path_factory.mktemp("promises"))


@pytest.mark.parametrize("name", NAMES)
def test_the_lists_are_those_of_the_product(name: str, product: Lists) -> None:
    listed = stored(HERE)[name]
    added = sorted(set(product[name]) - set(listed))
    gone = sorted(set(listed) - set(product[name]))
    assert (added, gone) == ([], []), (
        "The product and the list differ (first what the product has, then what only the list "
        "has). If that is intended, run `python -m tests.promises`. Each entry that is gone "
        "needs a line in CHANGELOG.md that contains it in backticks."
    )


def test_what_is_gone_since_the_last_release_is_in_the_changelog() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert unannounced(stored(RELEASED), stored(HERE), changelog) == []


def test_an_entry_that_is_gone_must_be_named() -> None:
    before = {"columns": ["alignment.tsv: probability", "alignment.tsv: source"]}
    now = {"columns": ["alignment.tsv: source"]}
    assert unannounced(before, now, "The probability is gone.") == [
        "alignment.tsv: probability"
    ]
    assert unannounced(before, now, "Removed `alignment.tsv:\nprobability`.") == []


def test_lists_are_sorted_and_complete() -> None:
    for folder in (HERE, RELEASED):
        lists = stored(folder)
        assert set(lists) == {*NAMES, "mlflow"}
        assert all(entries == sorted(set(entries)) for entries in lists.values())
        assert all(len(entries) > 10 for entries in lists.values())


def test_a_run_folder_has_its_files() -> None:
    # the tiny run of the lists writes what the contract names
    files = set(stored(Path(HERE))["files"])
    assert files >= {"run/config.yaml", "run/metrics.json", "run/alignment.tsv"}
