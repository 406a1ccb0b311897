"""The estimated memory of a run is close to the measured one, and what cannot fit is refused."""

import json
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import DictConfig

from emea.config.composition import composed
from emea.config.run_config import RunConfig
from emea.data.graph import KnowledgeGraph
from emea.data.graph_pair import GraphPair
from emea.data.sources.synthetic import synthetic_pair
from emea.errors import ConfigError
from emea.run import memory_estimate
from emea.run.job import run_job
from emea.run.memory_estimate import (
    ACCURACY,
    GIB,
    Phase,
    check_memory,
    estimate_memory,
    largest,
)
from experiments.archive.study import read_study

from ..sweeping import environment

Configs = Callable[..., DictConfig]
CPU = torch.device("cpu")
EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"


@pytest.fixture(scope="module")
def pair() -> GraphPair:
    return synthetic_pair(num_entities=200)


def phases_of(
    config: DictConfig, pair: GraphPair, device: torch.device
) -> tuple[Phase, ...]:
    phases = estimate_memory(RunConfig.of(config), pair, device)
    assert phases is not None
    return phases


def peak(config: DictConfig, pair: GraphPair) -> float:
    return largest(phases_of(config, pair, CPU)).num_bytes


def test_wide_embeddings_are_refused_before_training(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config("model.encoder.dim=16384", "data.num_entities=1000")
    monkeypatch.setattr(memory_estimate, "available_memory", lambda device: 2.0 * GIB)
    sentence = (
        r"^The run needs about [\d.]+ GiB of memory for search, but [\d.]+ GiB are available\. To "
        r"reduce it, use a smaller model\.encoder\.dim; to try anyway, set "
        r"trainer\.memory_check=false\.$"
    )
    with pytest.raises(ConfigError, match=sentence):
        run_job(config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_doubtful_estimate_only_warns(
    tiny_config: Configs,
    pair: GraphPair,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = tiny_config()
    for share, warns in ((1.01, False), (0.99, True), (1.01 / ACCURACY, True)):
        caplog.clear()
        left = share * peak(config, pair)
        monkeypatch.setattr(
            memory_estimate, "available_memory", lambda device, left=left: left
        )
        check_memory(RunConfig.of(config), pair, CPU)
        assert ("may run out of memory" in caplog.text) == warns
    monkeypatch.setattr(
        memory_estimate,
        "available_memory",
        lambda device: 0.99 / ACCURACY * peak(config, pair),
    )
    with pytest.raises(ConfigError, match="to try anyway"):
        check_memory(RunConfig.of(config), pair, CPU)
    config.trainer.memory_check = False
    caplog.clear()
    check_memory(RunConfig.of(config), pair, CPU)
    assert "It may run out of memory. To reduce it, use" in caplog.text


def larger(pair: GraphPair, factor: int) -> GraphPair:
    """A pair with more entities and triples; only their numbers are used."""
    graphs = [
        KnowledgeGraph(
            graph.triples.repeat(factor, axis=0), factor * graph.num_entities, 99
        )
        for graph in (pair.source, pair.target)
    ]
    return GraphPair("larger", *graphs, pair.links)


@pytest.mark.parametrize("model", ["rrea", "dual_amn", "lightea", "alinet"])
def test_estimates_grow_with_sizes_and_settings(
    model: str, tiny_config: Configs, pair: GraphPair
) -> None:
    base = [f"model={model}", "em=none"]
    widths = "dims=[1000,800,600]" if model == "alinet" else "dim=1024"
    usual = peak(tiny_config(*base), pair)
    assert peak(tiny_config(*base), larger(pair, 50)) > usual
    assert peak(tiny_config(*base, f"model.encoder.{widths}"), pair) > usual


def test_more_candidates_and_encoders_need_more(
    tiny_config: Configs, pair: GraphPair
) -> None:
    pair = larger(pair, 100)
    for em, key in (
        ("paper", "em.num_candidates"),
        ("dual", "em.two_way.max_candidates"),
    ):
        few, many = (
            peak(tiny_config(f"em={em}", "em.iterations=1", f"{key}={number}"), pair)
            for number in (20, 200)
        )
        assert many > few
    one, three = (
        peak(tiny_config("em=none", f"ensemble={name}"), pair)
        for name in ("none", "seeds")
    )
    assert three > one


def test_members_train_side_by_side_on_a_gpu_unless_graphs_are_large(
    tiny_config: Configs, pair: GraphPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def training(device: str) -> float:
        config = tiny_config("em=none", "ensemble=seeds")
        return phases_of(config, pair, torch.device(device))[0].num_bytes

    on_gpu, on_cpu = training("cuda"), training("cpu")
    monkeypatch.setattr(memory_estimate, "MAX_JOINT_ENTITIES", 0)
    assert training("cuda") < on_gpu and training("cpu") == on_cpu


def test_estimates_are_close_to_recorded_peaks_on_a_gpu() -> None:
    """Runs on zh-en with 150 to 4,500 labels."""
    sizes = ((19388, 70414), (19572, 95142))
    graphs = [KnowledgeGraph(np.zeros((rows, 3), int), size, 1) for size, rows in sizes]
    zh = GraphPair("zh", *graphs, np.zeros((0, 2), int))

    @cache
    def estimated(model: str, num_candidates: int, iterations: int) -> float:
        em = [f"em.num_candidates={num_candidates}", f"em.iterations={iterations}"]
        config = composed([f"model={model}", "em=paper", *em])
        return largest(phases_of(config, zh, torch.device("cuda"))).num_bytes / 2**20

    models = set()
    for run in read_study(EXPERIMENTS / "figure4"):
        params = run.header["params"]
        model = params["model.name"]
        if model == "iptranse":
            continue
        estimate = estimated(
            model, params["em.num_candidates"], params["em.iterations"]
        )
        ratio = estimate / run.scores["peak_memory_mb"]
        assert 1 / ACCURACY <= ratio <= ACCURACY, (model, ratio)
        models.add(model)
    assert models >= {"alinet", "dual_amn", "lightea"}


def test_encoders_of_others_can_estimate_their_memory(
    tiny_config: Configs, pair: GraphPair
) -> None:
    config = tiny_config("model=rrea")
    config.trust = ["tests.run.own_encoders"]
    config.model.encoder = {"_target_": "tests.run.own_encoders.Plain", "dim": 8}
    assert estimate_memory(RunConfig.of(config), pair, CPU) is None
    check_memory(RunConfig.of(config), pair, CPU)
    config.model.encoder._target_ = "tests.run.own_encoders.Estimated"
    num_entities = pair.source.num_entities + pair.target.num_entities
    training = phases_of(config, pair, CPU)[0]
    libraries = memory_estimate.memory_of_libraries(RunConfig.of(config))
    assert training.num_bytes - libraries == 3 * 4 * num_entities * 8


MEASURED = """
import json, sys, tempfile, torch
from pathlib import Path
from emea.record.pair_file import load_pair
from emea.config.composition import composed
from emea.runtime.device import memory_in_use
from emea.config.run_config import RunConfig
from emea.run.job import run_job
from emea.run.memory_estimate import estimate_memory, largest

config = composed(["tracking=none", "trainer=cpu", *sys.argv[1:]])
pair, device = load_pair(config), torch.device("cpu")
phases = estimate_memory(RunConfig.of(config), pair, device)
estimated = memory_in_use(device) + largest(phases).num_bytes
with tempfile.TemporaryDirectory() as folder:
    measured = run_job(config, Path(folder), pair=pair).metrics["peak_memory_mb"]
print(json.dumps([estimated / 2**20, measured]))
"""

SHORT = "model.initial_epochs=1"
SHORT_EM = f"{SHORT} em.iterations=1 model.epochs_per_iteration=1"


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        f"data.num_entities=500 em=none {SHORT}",
        f"data.num_entities=3000 em=none {SHORT}",
        f"data.num_entities=3000 em=dual {SHORT_EM}",
        f"data.num_entities=3000 em=none {SHORT} search=kmeans",
        f"data.num_entities=3000 em=none {SHORT} ensemble=seeds",
        f"data.num_entities=3000 model=dual_amn em=none {SHORT}",
        "data.num_entities=3000 model=lightea em=dual em.iterations=1",
        f"data.num_entities=3000 model=alinet em=none {SHORT} model.early_stopping=null",
        "data.num_entities=3000 method=paris",
        pytest.param(f"data=zh em=dual {SHORT_EM}", marks=pytest.mark.data),
        pytest.param(
            "data=zh model=lightea em=dual em.iterations=1", marks=pytest.mark.data
        ),
        pytest.param(f"data=zh model=dual_amn em=none {SHORT}", marks=pytest.mark.data),
    ],
)
def test_the_estimate_is_close_to_the_measured_peak(
    settings: str, record_property: Callable[[str, Any], None]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *settings.split()],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    estimated, measured = json.loads(done.stdout.splitlines()[-1])
    record_property("estimate", (settings, estimated, measured))
    assert 1 / ACCURACY <= estimated / measured <= ACCURACY, (estimated, measured)
