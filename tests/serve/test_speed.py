"""How long a query takes on a public graph."""

import time

import numpy as np
import pytest

from emea.config.composition import composed
from emea.data.sources.download import locate
from emea.explain.facts import Facts
from emea.record.pair_file import load_pair
from emea.serve.limits import Limits
from emea.serve.reconciliation import Reconciliation

MOST_MILLISECONDS = 50


@pytest.mark.data
def test_a_query_on_the_english_side_of_zh_is_fast() -> None:
    if not locate("dbp15k/zh_en").is_dir():
        pytest.skip("EMEA_DATA has no dbp15k")
    facts = Facts(load_pair(composed(["data=dbp15k_zh"])).target)
    service = Reconciliation(facts, "zh:target", Limits())
    rng = np.random.default_rng(0)
    milliseconds = []
    num_right = 0
    for entity in rng.choice(facts.graph.num_entities, 1000, replace=False).tolist():
        name = facts.title(entity)
        place = int(rng.integers(len(name)))
        query = {"query": name[:place] + name[place + 1 :]}  # a letter is missing
        began = time.process_time()
        (found,) = service.answer({"q": query}).values()
        milliseconds.append(1000 * (time.process_time() - began))
        num_right += facts.names[entity] in [one["id"] for one in found["result"]]
    p95 = float(np.percentile(milliseconds, 95))
    print(
        f"p95 {p95:.1f} ms, median {np.median(milliseconds):.1f} ms, {num_right} found"
    )
    assert p95 < MOST_MILLISECONDS
    assert num_right > 900
