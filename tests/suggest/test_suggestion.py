"""Suggestions of finished runs, and their files."""

import json
from dataclasses import replace

import numpy as np
import pytest

from emea.errors import ConfigError
from emea.explain.explainer import Explainer
from emea.run.finished_run import FinishedRun
from emea.suggest.review import COLUMNS, review_page, write_suggestions
from emea.suggest.suggestion import NUM_ALTERNATIVES, suggest

from ..finished_runs import Finished


@pytest.mark.parametrize("kind", ["dual", "paper", "none", "paris"])
def test_unlabelled_entities_are_suggested_with_their_candidates(
    kind: str, finished: Finished
) -> None:
    run = finished(kind)
    found = suggest(Explainer(run), 15)
    known = {*run.split.supervision.train[:, 0], *run.split.supervision.validation[:, 0]}
    assert len({one.source for one in found}) == 15 and not known & {one.source for one in found}
    for one in found:
        probs = [prob for _, prob in one.candidates]
        assert probs == sorted(probs, reverse=True) and len(probs) <= NUM_ALTERNATIVES
        assert 0 <= one.score <= one.uncertainty * (1 + one.influence) + 1e-9
    best = found[0]
    assert best.score == pytest.approx(best.uncertainty * (1 + best.influence))


def test_blank_nodes_are_not_suggested(finished: Finished) -> None:
    run = finished("dual")
    first = suggest(Explainer(run), 1)[0].source
    names = [f"e{entity}" for entity in range(run.pair.source.num_entities)]
    names[first] = "_:[1]"
    pair = replace(run.pair, source=replace(run.pair.source, entity_names=names))
    found = suggest(Explainer(replace(run, pair=pair)), len(names))
    assert found and first not in {one.source for one in found}


def test_test_links_change_no_suggestion(finished: Finished) -> None:
    run = finished("dual")
    wrong = run.split.test.copy()
    wrong[:, 1] = np.random.default_rng(1).permutation(wrong[:, 1])
    links = np.concatenate([run.split.supervision.train, run.split.supervision.validation])
    for test in (wrong, wrong[:0]):
        pair = replace(run.pair, links=np.concatenate([links, test]))
        other = replace(run, pair=pair, split=replace(run.split, test=test))
        assert _page(other) == _page(run)


def _page(run: FinishedRun) -> str:
    explainer = Explainer(run)
    return review_page(explainer, suggest(explainer, 5))


def test_files_hold_the_suggestions(
    finished: Finished, tmp_path_factory: pytest.TempPathFactory
) -> None:
    run, folder = finished("dual"), tmp_path_factory.mktemp("files")
    found = suggest(Explainer(run), 4)
    table, lines = write_suggestions(folder, run.pair, found)
    rows = [line.split("\t") for line in table.read_text().splitlines()]
    assert rows[0] == list(COLUMNS) and [int(row[0]) for row in rows[1:]] == [
        one.source for one in found
    ]
    objects = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [one["source"] for one in objects] == [row[0] for row in rows[1:]]
    assert [one["candidates"][0]["target"] for one in objects] == [row[1] for row in rows[1:]]
    assert objects[0]["score"] == pytest.approx(found[0].score, abs=1e-5)


def test_the_count_must_be_positive(finished: Finished) -> None:
    with pytest.raises(ConfigError, match="at least 1, got 0"):
        suggest(Explainer(finished("dual")), 0)


def test_only_the_given_entities_are_suggested(finished: Finished) -> None:
    explainer = Explainer(finished("dual"))
    found = [one.source for one in suggest(explainer, 20)]
    among = np.array(sorted(found[1::2]))
    chosen = [one.source for one in suggest(explainer, 20, among)]
    assert sorted(chosen) == among.tolist()
    assert suggest(explainer, 1, among)[0].source == chosen[0]
