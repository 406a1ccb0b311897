"""The review page: its HTML, and the files that a person saves from it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emea.explain.explainer import Explainer
from emea.run.finished_run import FinishedRun
from emea.suggest.review import review_page
from emea.suggest.suggestion import suggest

from ..finished_runs import Finished


@pytest.fixture
def run(finished: Finished) -> FinishedRun:
    """A run whose names need escaping."""
    plain = finished("dual")
    source, target = plain.pair.source, plain.pair.target
    pair = replace(
        plain.pair,
        source=replace(source, entity_names=[f"<b>{n}" for n in range(source.num_entities)]),
        target=replace(target, entity_names=[f'"{n}"&' for n in range(target.num_entities)]),
    )
    answers = Explainer(plain)
    answers.prepare()
    return replace(plain, pair=pair)


@pytest.fixture
def page(run: FinishedRun) -> str:
    explainer = Explainer(run)
    explainer.__dict__["answers"] = {}  # the folder's file has other names
    return review_page(explainer, suggest(explainer, 3))


def test_the_page_shows_each_suggestion_and_escapes_names(page: str, run: FinishedRun) -> None:
    assert page.count("<section ") == 3 and "<b>" not in page
    first = run.labels.tolist()[0]
    assert f"&lt;b&gt;{first[0]}\t&#34;{first[1]}&#34;&amp;\n" in page
    assert "test link" not in page


def saved(shown: Any, button: str) -> list[str]:
    with shown.expect_download() as download:
        shown.get_by_role("button", name=button).click()
    assert download.value.suggested_filename == button.removeprefix("Save ")
    return Path(download.value.path()).read_text(encoding="utf-8").splitlines()


@pytest.mark.browser
def test_decisions_are_saved(visit: Any, page: str, run: FinishedRun, tmp_path: Path) -> None:
    (tmp_path / "review.html").write_text(page, encoding="utf-8")
    shown = visit.open(tmp_path / "review.html")
    first, second, third = (shown.locator(f"#entity{place}") for place in (1, 2, 3))
    assert shown.get_by_role("button", name="Save links.tsv").is_disabled()
    targets = [one.get_attribute("data-target") for one in first.locator("[data-target]").all()]
    first.get_by_role("radio").nth(1).check()  # not the best candidate
    first.locator(".reject").first.check()
    second.get_by_role("radio", name="None of these").check()
    third.get_by_label("Name of another target entity").fill('"7"&')
    names = [part.get_attribute("data-source") for part in (first, second, third)]
    assert first.locator("[data-state]").inner_text() == "accepted"
    assert second.locator("[data-state]").inner_text() == "rejected"
    known = {int(target) for _, target in run.labels.tolist()}
    known |= set(run.split.supervision.validation[:, 1].tolist())
    assert (7 in known) == shown.get_by_role("button", name="Save links.tsv").is_disabled()
    free = next(n for n in range(150) if n not in known and f'"{n}"&' not in targets)
    third.get_by_label("Name of another target entity").fill(f'"{free}"&')
    links = saved(shown, "Save links.tsv")
    num_known = len(run.labels) + len(run.split.supervision.validation)
    assert links[0] == "source\ttarget" and len(links) == 1 + num_known + 2
    assert links[-2:] == [f"{names[0]}\t{targets[1]}", f'{names[2]}\t"{free}"&']
    rejected = saved(shown, "Save rejected.tsv")
    others = [one.get_attribute("data-target") for one in second.locator("[data-target]").all()]
    expected = [f"{names[0]}\t{targets[0]}", *(f"{names[1]}\t{other}" for other in others)]
    assert rejected == ["source\ttarget", *expected]
    shown.reload()
    assert first.get_by_role("radio").nth(1).is_checked()
    assert [one for one in visit.requests if not one.startswith(("file:", "blob:"))] == []
    assert visit.errors == []


@pytest.mark.browser
def test_two_links_of_one_target_are_refused(visit: Any, page: str, tmp_path: Path) -> None:
    (tmp_path / "review.html").write_text(page, encoding="utf-8")
    shown = visit.open(tmp_path / "review.html")
    for place in (1, 2):
        field = shown.locator(f"#entity{place}").get_by_label("Name of another target entity")
        field.fill("the same")
    assert shown.get_by_role("button", name="Save links.tsv").is_disabled()
    assert "the same has two links" in shown.get_by_role("alert").inner_text()
