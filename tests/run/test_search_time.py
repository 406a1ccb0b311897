"""Long candidate searches are announced."""

import logging
from collections.abc import Callable

import pytest
import torch
from omegaconf import DictConfig

from emea.run import search_time
from emea.run.search_time import announce_searches, seconds_per_pair

Configs = Callable[..., DictConfig]
CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("settings", "size", "announced"),
    [
        (["em=none"], 10_000, "about 8 min"),
        (["em.iterations=2"], 10_000, "about 25 min"),
        (["em=dual", "em.iterations=1"], 10_000, "about 23 min"),
        (["em=none"], 2_000, None),
        (["em=none", "search=kmeans"], 10_000, None),
        (["em=none"], 100_000, None),  # search=auto uses one_pass
    ],
)
def test_the_time_grows_with_pairs_and_iterations(
    settings: list[str],
    size: int,
    announced: str | None,
    tiny_config: Configs,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(search_time, "seconds_per_pair", lambda width: 1e-6)
    with caplog.at_level(logging.INFO):
        announce_searches(tiny_config(*settings), size, size, 100, CPU)
    assert (announced is None) == (caplog.text == "")
    assert announced is None or announced in caplog.text


def test_a_measurement_leaves_the_random_generator_alone() -> None:
    before = torch.get_rng_state()
    assert 0 < seconds_per_pair(64) < 1e-3
    assert torch.equal(torch.get_rng_state(), before)
