"""The page of an alignment: its content, and what a person does with it in a browser."""

import base64
import gzip
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from emea.answer.decision import Decision
from emea.data.attributes import AttributeTriples
from emea.explain import page_content as page_content_module
from emea.explain import wording
from emea.explain.alignment_page import (
    View,
    alignment_page,
    asked_view,
    run_page,
    write_page,
)
from emea.explain.explainer import Explainer
from emea.explain.page_content import packed, page_content
from emea.matching.beliefs import Beliefs
from emea.run.finished_run import FinishedRun
from emea.suggest import reason, suggest

from ..finished_runs import Finished

NUM_ROWS = 150
"""Source entities of the runs."""

CONTENT = re.compile(r'id="content">([^<]*)<')


@pytest.fixture
def run(finished: Finished) -> FinishedRun:
    """A run whose names need escaping, and whose relations have names."""
    plain = finished("dual")
    source, target = plain.pair.source, plain.pair.target
    pair = replace(
        plain.pair,
        source=replace(
            source, entity_names=[f"<b>{n}" for n in range(source.num_entities)]
        ),
        target=replace(
            target, entity_names=[f'"{n}"&' for n in range(target.num_entities)]
        ),
    )
    return replace(plain, pair=pair)


@pytest.fixture
def explainer(run: FinishedRun, finished: Finished) -> Explainer:
    found = Explainer(run)
    found.__dict__["answers"] = Explainer(
        finished("dual")
    ).answers  # its file has other names
    return found


@pytest.fixture
def page(explainer: Explainer, tmp_path: Path) -> Path:
    write_page(
        run_page(explainer, tmp_path / "a folder"), tmp_path / "page.html", False
    )
    return tmp_path / "page.html"


@pytest.fixture
def review(explainer: Explainer, tmp_path: Path) -> Path:
    chosen = [(one.source, reason(one)) for one in suggest(explainer, 3)]
    text = alignment_page(explainer, tmp_path, view=View("Review", "To label", chosen))
    write_page(text, tmp_path / "review.html", False)
    return tmp_path / "review.html"


def content_of(page: str) -> dict[str, Any]:
    found = CONTENT.search(page)
    assert found
    content: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(found[1])))
    return content


def test_entities_to_label_have_all_their_candidates(
    review: Path, explainer: Explainer
) -> None:
    starts, targets, _ = content_of(review.read_text(encoding="utf-8"))["candidates"]
    suggestions = suggest(explainer, 3)
    assert any(one.candidates[0][1] < 0.001 for one in suggestions)
    for one in suggestions:
        shown = targets[starts[one.source] : starts[one.source + 1]]
        assert shown == [target for target, _ in one.candidates]


@pytest.mark.parametrize(
    "kind", ["dual", "one_to_one", "paper", "paris", "none", "mutual"]
)
def test_the_rows_are_the_alignment(kind: str, finished: Finished) -> None:
    run = finished(kind)
    explainer = Explainer(run)
    content = page_content(explainer, (), with_test=True)
    rows = content["rows"]
    shown = list(zip(rows["sources"], rows["targets"], rows["probs"], strict=True))
    matches = {source: (target, prob) for source, target, prob in shown if target >= 0}
    assert matches == explainer.answers
    num_source = run.pair.source.num_entities
    assert (
        rows["sources"] == list(range(num_source))
        and len(set(rows["sources"])) == num_source
    )
    given = [
        source
        for source, is_given in zip(rows["sources"], rows["given"], strict=True)
        if is_given
    ]
    assert given == sorted(run.labels[:, 0].tolist())
    assert content["judged"][1]["links"] == run.split.test.tolist()


def test_an_entity_with_several_matches_has_several_rows(
    finished: Finished, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = finished("dual")
    num_source = run.pair.source.num_entities
    targets = torch.arange(2 * num_source).reshape(-1, 2) % run.pair.target.num_entities
    probs = torch.tensor([[0.9, 0.4], [0.0, 0.8], [0.0, 0.0]]).repeat(num_source, 1)[
        :num_source
    ]
    both = Decision(run.beliefs, Beliefs(targets, probs), run.labels[:0], 0.0)
    monkeypatch.setattr(page_content_module, "run_decision", lambda *_: both)
    rows = page_content(Explainer(run), (), with_test=True)["rows"]
    assert rows["sources"][:4] == [0, 0, 1, 2] and rows["targets"][:4] == [0, 1, 3, -1]
    assert rows["probs"][:4] == pytest.approx([0.9, 0.4, 0.8, 0.0]) and not any(
        rows["given"]
    )


def test_a_review_knows_nothing_of_test_links_and_names_are_escaped(
    explainer: Explainer, page: Path, review: Path
) -> None:
    text = review.read_text(encoding="utf-8")
    content = content_of(text)
    assert [one["name"] for one in content["judged"]] == ["validation links"]
    assert len(content["suggested"]) == 3 and "for test" not in text
    text = page.read_text(encoding="utf-8")
    assert "<b>" not in text.partition("<body")[2].partition("<script")[0]


def test_a_large_page_leaves_parts_out(explainer: Explainer) -> None:
    content = page_content(explainer, (), with_test=False)
    whole = len(packed(content))
    assert len(packed(content, whole)) == whole and content["evidence"]
    assert len(packed(content, whole - 1)) < whole
    assert content["evidence"] is None and content["source"]["triples"]
    packed(content, 1)
    assert content["source"]["triples"] is None and content["rows"]["sources"]


@pytest.mark.browser
def test_the_evidence_is_that_of_the_explanation(
    visit: Any, page: Path, explainer: Explainer
) -> None:
    shown = visit.open(page)
    for source in np.random.default_rng(0).permutation(
        explainer.run.pair.source.num_entities
    )[:8]:
        open_row(shown, int(source))
        found = explainer(int(source), explainer.best_target(int(source)) or 0).asked
        expected = [
            f"{wording.percent(group.share)} {group.neighbour.name} = {group.counterpart.name}"
            for group in wording.grouped(found.contributions)
        ]
        lines = shown.locator("#pane ul:has(> li > meter) > li")
        if len(expected) > 12:
            shown.locator("#pane ul:has(> li > meter) > li > button").click()
        texts = [
            " ".join(text.split("\n")[0].split()) for text in lines.all_inner_texts()
        ]
        assert len(texts) == len(expected)
        named = [re.sub(r" (given link|match .*)$", "", text) for text in texts]
        assert sorted(named) == sorted(expected)
        silent = f"{len(found.unmatched):,} neighbour"
        assert not found.unmatched or silent in shown.locator("#pane").inner_text()
    assert visit.errors == []


IS_DRAWN = """lines => lines.every(line => line.getBoundingClientRect().width > 50
    && getComputedStyle(line).stroke != "none"
    && parseFloat(getComputedStyle(line).strokeWidth) > 0.5)"""
"""A horizontal line has a bounding box of height 0, so the stroke is checked as well."""


@pytest.mark.browser
def test_asked_pairs_have_their_numbers_and_a_drawing(
    visit: Any, explainer: Explainer, tmp_path: Path
) -> None:
    told = [explainer(source, explainer.best_target(source) or 0) for source in (3, 5)]
    told.append(explainer(3, 7))  # not a match
    text = alignment_page(explainer, tmp_path, view=asked_view(told))
    write_page(text, tmp_path / "why.html", False)
    shown = visit.open(tmp_path / "why.html")
    pane = shown.locator("#pane")
    assert shown.locator(".row").count() == 2
    assert wording.verdict(told[0]) in pane.inner_text()
    assert wording.verdict(told[2]) in pane.inner_text()
    pane.locator("summary", has_text="Numbers").click()
    rows = [row.inner_text().split("\t") for row in pane.locator("details tr").all()]
    expected = [*wording.comparison(told[0]), *wording.features(told[0])]
    assert rows[1:] == [list(row) for row in expected]
    pane.get_by_role("button", name="Draw both").click()
    picture = shown.locator("dialog svg")
    groups = wording.grouped(told[0].asked.contributions)
    sides = {one.neighbour for one in groups}, {one.counterpart for one in groups}
    assert picture.locator("line.link").evaluate_all(IS_DRAWN)
    assert max(map(len, sides)) > 12 or picture.locator("line.link").count() == len(
        groups
    )
    frame = picture.bounding_box()
    for box in (text.bounding_box() for text in picture.locator("text").all()):
        assert (
            frame["x"] <= box["x"]
            and box["x"] + box["width"] <= frame["x"] + frame["width"]
        )
    shown.keyboard.press("Escape")
    assert picture.count() == 0
    assert visit.errors == [] and len(visit.requests) == 1


def open_row(shown: Any, source: int) -> None:
    place = sorted(range(NUM_ROWS), key=str).index(
        source
    )  # rows are in the order of the names
    shown.evaluate(
        "place => { document.querySelector('.grid').scrollTop = place * 34 }", place
    )
    shown.locator(f'.row[data-row="{source}"]').click()


def saved(shown: Any, button: str) -> list[str]:
    with shown.expect_download() as download:
        shown.get_by_role("button", name=button).click()
    assert download.value.suggested_filename == button.removeprefix("Save ")
    return Path(download.value.path()).read_text(encoding="utf-8").splitlines()


@pytest.mark.browser
def test_decisions_are_saved(
    visit: Any, review: Path, run: FinishedRun, tmp_path: Path
) -> None:
    shown = visit.open(review)
    rows, pane = shown.locator(".row"), shown.locator("#pane")
    known = [*run.labels.tolist(), *run.split.supervision.validation.tolist()]
    assert (
        rows.count() == 3
        and shown.get_by_role("button", name="Save links.tsv").is_disabled()
    )
    names = [row.locator(".source .name").inner_text() for row in rows.all()]
    rows.nth(0).click()
    assert "Uncertain neighbours" in pane.inner_text()
    targets = pane.locator(".candidate").all_inner_texts()
    pane.get_by_role("button", name="Accept").nth(1).click()  # not the best candidate
    pane.get_by_role("button", name="Reject").nth(0).click()
    assert rows.nth(0).locator(".decision").inner_text() == f"→ {targets[1]}"
    rows.nth(1).click()
    others = pane.locator(".candidate").all_inner_texts()
    pane.get_by_role("button", name="None of these").click()
    rows.nth(2).click()
    field = pane.get_by_role("combobox")
    field.fill("no such entity")
    field.press("Enter")
    assert "No entity of the target graph" in pane.inner_text()
    assert "accepted" not in rows.nth(2).locator(".decision").inner_text()
    taken = {target for _, target in known}
    field.fill(f'"{min(taken)}"&')
    field.press("Enter")
    assert f'"{min(taken)}"& has two links' in shown.locator("#conflict").inner_text()
    assert shown.get_by_role("button", name="Save links.tsv").is_disabled()
    free = next(n for n in range(150) if n not in taken and f'"{n}"&' not in targets)
    pane.get_by_role("combobox").fill(f'"{free}"&')
    pane.get_by_role("combobox").press("Enter")
    links = saved(shown, "Save links.tsv")
    assert links[0] == "source\ttarget" and len(links) == 1 + len(known) + 2
    assert links[-2:] == [f"{names[0]}\t{targets[1]}", f'{names[2]}\t"{free}"&']
    rejected = saved(shown, "Save rejected.tsv")
    expected = [
        f"{names[0]}\t{targets[0]}",
        *(f"{names[1]}\t{other}" for other in others),
    ]
    assert rejected == ["source\ttarget", *expected]
    command = (
        f"emea update {tmp_path.resolve()} --links links.tsv --rejected rejected.tsv"
    )
    assert shown.locator("#command").inner_text() == command
    shown.reload()
    assert rows.nth(0).locator(".decision").inner_text() == f"→ {targets[1]}"
    assert [
        one for one in visit.requests if not one.startswith(("file:", "blob:"))
    ] == []
    assert visit.errors == []


def test_a_page_is_small_and_needs_no_chart_library(
    explainer: Explainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    text = alignment_page(explainer, tmp_path)
    assert len(text) < 200_000
    assert text.count("<script>") == 1


@pytest.mark.browser
def test_charts_have_axes_tooltips_and_the_threshold(visit: Any, page: Path) -> None:
    shown = visit.open(page)
    charts = shown.locator("figure.chart svg")
    titles = ["Probabilities", "Reliability", "Precision and recall by threshold"]
    assert charts.locator("text.title").all_text_contents() == titles
    names = ["probability", "matches", "stated probability", "share that is right"]
    assert charts.locator("text.name").all_text_contents() == [
        *names,
        "threshold",
        "share",
    ]
    bars = charts.nth(0).locator("rect")
    counts = [int(one.split()[3]) for one in bars.locator("title").all_text_contents()]
    rows = content_of(page.read_text(encoding="utf-8"))["rows"]
    matched = (np.array(rows["targets"]) >= 0) & ~np.array(rows["given"], dtype=bool)
    assert sum(counts) == matched.sum()
    shown.get_by_label("Threshold as a number").fill("0.5")
    shown.wait_for_function(
        "document.querySelectorAll('.threshold-line')[1].getAttribute('x1') === '150'"
    )
    assert charts.locator(".threshold-line").count() == 2
    assert (
        len(set(bars.evaluate_all("all => all.map(one => one.getAttribute('fill'))")))
        == 2
    )
    assert visit.errors == []


@pytest.mark.browser
def test_the_threshold_filters_and_the_search(
    visit: Any, page: Path, explainer: Explainer
) -> None:
    shown = visit.open(page)
    assert shown.locator("figure.chart svg").count() == 3
    rows = content_of(page.read_text(encoding="utf-8"))["rows"]
    probs, given = np.array(rows["probs"]), np.array(rows["given"], dtype=bool)
    shown.get_by_label("Threshold as a number").fill("0.7")
    accepted = given | (probs >= 0.7)

    def count(name: str) -> int:
        label = shown.get_by_role("button", name=re.compile(f"^{name}")).inner_text()
        return int(label.removeprefix(name).replace(",", ""))

    shown.get_by_role("button", name=re.compile("^Unmatched")).click()
    assert (
        count("Matched") == accepted.sum() and count("Unmatched") == (~accepted).sum()
    )
    assert (
        int(shown.locator(".grid").get_attribute("aria-rowcount"))
        == 1 + (~accepted).sum()
    )
    counts = np.bincount(np.array(rows["targets"])[accepted])
    assert count("Conflicts") == counts[counts > 1].sum()
    assert (
        f"{(accepted & ~given).sum()} matches"
        in shown.locator("#accepted").inner_text()
    )
    shown.get_by_role("button", name=re.compile("^All")).click()
    shown.get_by_role("columnheader", name="Probability").get_by_role("button").click()
    first = float(shown.locator(".row .probability").first.inner_text())
    assert first == probs.max() and shown.locator("[aria-sort=descending]").count() == 1
    shown.get_by_label("Search").fill("<b>14")
    found = [
        n for n in range(explainer.run.pair.source.num_entities) if "14" in str(n)[:2]
    ]
    assert shown.locator(".row").count() == len(found)
    assert [one for one in visit.requests if not one.startswith("file:")] == []
    assert visit.errors == []


@pytest.mark.browser
def test_a_namespace_is_searched_as_a_part_of_an_iri(
    visit: Any, explainer: Explainer, tmp_path: Path
) -> None:
    pair = explainer.run.pair
    names = [
        f"http://places.example/{number}" for number in range(pair.source.num_entities)
    ]
    source = replace(pair.source, entity_names=names)
    pair = replace(pair, source=source)
    text = run_page(Explainer(replace(explainer.run, pair=pair)), tmp_path)
    write_page(text, tmp_path / "page.html", False)
    shown = visit.open(tmp_path / "page.html")
    for word, rows in (
        ("places", "0 rows"),
        ("example/149", "1 row"),
        ("example/", "150 rows"),
    ):
        shown.get_by_label("Search").fill(word)
        shown.get_by_text(rows, exact=True).wait_for()


@pytest.mark.browser
def test_keyboard_blind_labelling_and_narrow_screens(visit: Any, page: Path) -> None:
    shown = visit.open(page)
    shown.locator(".grid").focus()
    for key in ("ArrowDown", "ArrowDown", "a"):
        shown.keyboard.press(key)
    second = shown.locator(".row").nth(1)
    assert second.get_attribute("aria-selected") == "true"
    assert second.locator(".decision").inner_text() == "accepted"
    shown.keyboard.press("u")
    known = content_of(page.read_text(encoding="utf-8"))["known"][0]
    open_row(shown, known[0])
    shown.keyboard.press("r")
    said = f"another link for <b>{known[0]}. Save taken_back.tsv, too"
    assert said in shown.locator("#changed").inner_text()
    assert "--take-back taken_back.tsv" in shown.locator("#command").inner_text()
    assert saved(shown, "Save taken_back.tsv")[1].startswith(f"<b>{known[0]}\t")
    shown.keyboard.press("u")
    assert not shown.locator("#changed").is_visible()
    shown.evaluate("document.querySelector('.grid').scrollTop = 0")
    shown.keyboard.press("Escape")
    assert not shown.locator("#pane").is_visible()
    shown.locator("#blind").check()
    assert second.locator(".probability").inner_text() == "hidden"
    second.click()
    assert not re.search(r"\d\.\d\d\d", shown.locator("#pane").inner_text())
    shown.locator("#pane").get_by_role("button", name="Accept").first.click()
    assert re.search(r"\d\.\d\d\d", second.locator(".probability").inner_text())
    shown.set_viewport_size({"width": 390, "height": 800})
    assert shown.evaluate("document.documentElement.scrollWidth") <= 390
    assert visit.errors == []


@pytest.mark.browser
def test_all_labels_are_searched_and_the_found_one_is_shown(
    visit: Any, explainer: Explainer, tmp_path: Path
) -> None:
    pair = explainer.run.pair
    labels = [f"label {number}" for number in range(pair.source.num_entities)]
    names = ["http://www.w3.org/2000/01/rdf-schema#label"]
    values = ["label 7", "Der Turmbau"]
    triples = np.array([[7, 0, 0], [7, 0, 1]])
    literals = AttributeTriples(triples, names, values, np.zeros(2, dtype=np.int64))
    source = replace(pair.source, labels=labels, attributes=literals)
    changed = replace(explainer.run, pair=replace(pair, source=source))
    write_page(run_page(Explainer(changed), tmp_path), tmp_path / "page.html", False)
    shown = visit.open(tmp_path / "page.html")
    shown.get_by_label("Search").fill("turm")
    shown.get_by_text("1 row", exact=True).wait_for()
    assert "label 7 (found: Der Turmbau)" in shown.locator(".row").first.inner_text()
    shown.get_by_label("Search").fill("label")
    shown.get_by_text("150 rows", exact=True).wait_for()
    assert not shown.locator(".found").count()
    # by name, then by probability
    assert shown.locator(".row .source").first.inner_text() == "label 0"
    shown.get_by_label("Order").select_option("probability")
    probs = content_of((tmp_path / "page.html").read_text(encoding="utf-8"))["rows"][
        "probs"
    ]
    assert float(shown.locator(".row .probability").first.inner_text()) == max(probs)
    assert visit.errors == []


def test_pages_know_all_labels_and_no_order_of_data_without_files(
    explainer: Explainer,
) -> None:
    content = page_content(explainer, (), with_test=True)
    assert content["source"]["otherLabels"] == {}
    assert content["source"]["fileOrder"] is None
