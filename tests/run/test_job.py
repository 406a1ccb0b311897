import errno
import hashlib
import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import DictConfig

from emea.config.composition import option_names
from emea.data.sources.synthetic import synthetic_pair
from emea.errors import ConfigError, DataError, DivergedError, UserError
from emea.record import run_folder
from emea.record.run_folder import finite, read_metrics
from emea.record.run_record import read_closing, read_header, read_series
from emea.run import job, result
from emea.run.job import _thread_limit, run_job

Configs = Callable[..., DictConfig]


def test_a_run_leaves_what_the_contract_names(
    tiny_config: Configs, tmp_path: Path
) -> None:
    result = run_job(tiny_config("em.iterations=2"), tmp_path)
    metrics = read_metrics(tmp_path)
    alignment = (tmp_path / "alignment.tsv").read_bytes()
    assert metrics.pop("alignment_sha256") == hashlib.sha256(alignment).hexdigest()
    beliefs = hashlib.sha256((tmp_path / "beliefs.npz").read_bytes()).hexdigest()
    assert metrics.pop("beliefs_sha256") == beliefs
    assert metrics.pop("decisions_sha256") is None
    assert metrics == json.loads(json.dumps(finite(result.metrics)))
    assert metrics["final"] == result.metrics["final"]
    assert (result.folder, result.header) == (tmp_path, read_header(tmp_path))
    for metric in ("hit@1", "hit@5", "hit@10", "mrr", "mr"):
        for stage in ("initial", "final"):
            assert math.isfinite(metrics[stage][metric])
            assert math.isfinite(metrics[stage]["all_targets"][metric])
    identity = {
        key: metrics[key]
        for key in ("protocol", "data", "model", "rule", "em", "method")
    }
    assert identity == {
        "protocol": "strict",
        "data": "synthetic",
        "model": "rrea",
        "rule": "paris",
        "em": "paper",
        "method": "emea",
    }
    assert [entry["iteration"] for entry in metrics["history"]] == [0, 1, 2]
    for entry in metrics["history"]:
        assert {"neural", "joint", "search"} <= set(entry["seconds"])
        assert entry["joint"]["hit@1"] >= 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {
        "config.yaml",
        "metrics.json",
        "alignment.tsv",
        "ranks.npz",
        "beliefs.npz",
        "checkpoint.safetensors",
        "run.json",
        "series.jsonl",
    }
    lines = (tmp_path / "alignment.tsv").read_text().splitlines()
    assert lines[0] == "source\ttarget\tprobability\tsource_label\ttarget_label"
    unmatched = (tmp_path / "unmatched.tsv").read_text().splitlines()
    assert len(lines) + len(unmatched) == 152
    with np.load(tmp_path / "ranks.npz") as ranks:
        assert np.mean(ranks["final_in_pool"] <= 1) == metrics["final"]["hit@1"]
    closing = read_closing(tmp_path)
    assert closing is not None
    assert closing.status == "FINISHED"
    steps = [
        point.step for point in read_series(tmp_path) if "neural/hit@1" in point.metrics
    ]
    assert steps == [0, 1, 2]
    recalls = {
        point.step: point.metrics["threshold/recall"]
        for point in read_series(tmp_path)
        if "threshold/recall" in point.metrics
    }
    assert recalls[0] == metrics["export"]["test"]["recall"] and set(recalls) <= set(
        range(100)
    )
    assert all(recalls[step] <= recalls[0] for step in recalls)
    curves = metrics["sources"]
    for name, rows in (
        ("by_mean_prob/accuracy", "bins"),
        ("by_recall/precision", "curve"),
    ):
        logged = [
            point.metrics[name]
            for point in read_series(tmp_path)
            if name in point.metrics
        ]
        assert logged == [row[name.partition("/")[2]] for row in curves[rows]]
    assert "sweep" not in read_header(tmp_path).tags


def test_without_em_there_is_no_joint_module(
    tiny_config: Configs, tmp_path: Path
) -> None:
    metrics = run_job(tiny_config("em=none", "rule=none"), tmp_path).metrics
    assert metrics["method"] == "neural"
    assert metrics["rule"] == "none"
    assert [entry["joint"] for entry in metrics["history"]] == [None]
    assert metrics["initial"] == metrics["final"]


def test_em_from_another_runs_weights_equals_one_run(
    tiny_config: Configs, tmp_path: Path
) -> None:
    whole = run_job(tiny_config("em.iterations=1"), tmp_path / "whole").metrics
    run_job(tiny_config("em=none"), tmp_path / "first")
    checkpoint = tmp_path / "first" / "checkpoint.safetensors"
    parts = run_job(
        tiny_config("em.iterations=1", f"initial_from={checkpoint}"), tmp_path / "then"
    ).metrics
    assert parts["initial"] == whole["initial"]
    assert parts["final"] == whole["final"]
    alignments = [
        (tmp_path / name / "alignment.tsv").read_bytes() for name in ("whole", "then")
    ]
    assert alignments[0] == alignments[1]


@pytest.fixture
def _any_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs have learning rates that the check of settings refuses."""
    monkeypatch.setattr(job, "check_config", lambda _: None)


@pytest.mark.usefixtures("_any_rate")
def test_a_failing_run_says_so_in_its_records(
    tiny_config: Configs, tmp_path: Path
) -> None:
    with pytest.raises(DivergedError, match=r"at step \d+"):
        run_job(tiny_config("model.optimizer.lr=1e38"), tmp_path)
    closing = read_closing(tmp_path)
    assert closing is not None
    assert closing.status == "FAILED"
    assert "The loss became" in closing.reason


@pytest.mark.usefixtures("_any_rate")
def test_weights_that_blow_up_in_the_last_step_are_no_result(
    tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config("em=none", "model.initial_epochs=1", "model.optimizer.lr=1e30")
    with pytest.raises(DivergedError, match=r"^RREA.*NaN or infinite .* after step 1"):
        run_job(config, tmp_path)


@pytest.mark.parametrize("first", [("split_seed=1", "em=none"), ("em.iterations=1",)])
def test_weights_that_saw_other_links_are_refused(
    first: tuple[str, ...], tiny_config: Configs, tmp_path: Path
) -> None:
    run_job(tiny_config(*first), tmp_path / "first")
    checkpoint = tmp_path / "first" / "checkpoint.safetensors"
    with pytest.raises(DataError, match="trained on other links"):
        run_job(
            tiny_config("em.iterations=1", f"initial_from={checkpoint}"),
            tmp_path / "then",
        )


@pytest.mark.slow
def test_seeds_differ_also_from_shared_weights(
    tiny_config: Configs, tmp_path: Path
) -> None:
    run_job(tiny_config("em=none"), tmp_path / "first")
    start = f"initial_from={tmp_path / 'first' / 'checkpoint.safetensors'}"
    for seed in (0, 1):
        run_job(
            tiny_config("em.iterations=1", start, f"seed={seed}"), tmp_path / str(seed)
        )
    files = [(tmp_path / str(seed) / "alignment.tsv").read_bytes() for seed in (0, 1)]
    assert files[0] != files[1]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("+em.foo=1", "em.foo is unknown"),
        ("+model.encoder.width=3", "does not accept its settings"),
    ],
)
def test_unknown_settings_are_one_sentence(
    override: str, message: str, tiny_config: Configs, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        run_job(tiny_config(override), tmp_path)


def test_approximate_search_reports_its_recall(
    tiny_config: Callable[..., DictConfig], tmp_path: Path
) -> None:
    config = tiny_config("em.iterations=1", "search=kmeans", "search.num_probes=4")
    metrics = run_job(config, tmp_path).metrics
    assert metrics["search"] == "kmeans"
    assert all(0.3 < entry["search_recall"] <= 1 for entry in metrics["history"])


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:113] DefaultCPUAllocator: not enough memory"
        ),
        RuntimeError(
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
        ),
        MemoryError("Unable to allocate 20.0 GiB for an array"),
        OSError(errno.ENOMEM, "Cannot allocate memory"),
    ],
    ids=["CUDA", "CPU, ARM", "CPU, x86", "numpy", "system"],
)
def test_out_of_memory_ends_with_one_sentence_of_advice(
    error: Exception,
    tiny_config: Configs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forward(*_: object) -> None:
        raise error

    monkeypatch.setattr("emea.encoders.rrea.RREA.forward", forward)
    with pytest.raises(
        UserError, match=r"^Out of memory.*model.encoder.dim.*trainer=cpu"
    ):
        run_job(tiny_config(), tmp_path)
    closing = read_closing(tmp_path)
    assert closing is not None and str(error) in closing.reason


@pytest.mark.parametrize(
    ("num_entities", "device", "expected"),
    [(100, "cpu", 1), (1500, "cpu", 2), (1500, "cuda", 1)],
)
def test_small_graphs_and_gpus_need_one_thread(
    num_entities: int, device: str, expected: int
) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with _thread_limit(
            synthetic_pair(num_entities=num_entities), torch.device(device)
        ):
            assert torch.get_num_threads() == expected
    finally:
        torch.set_num_threads(before)


ARRAYS = (run_folder.RANKS_FILE, run_folder.BELIEFS_FILE)


def full_disk(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_failed_write_ends_the_run_without_metrics(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tiny_config("em=none")
    with monkeypatch.context() as patch, pytest.raises(UserError, match="disk is full"):
        patch.setattr(result, "write_checked_arrays", full_disk)
        run_job(config, tmp_path)
    assert not (tmp_path / run_folder.METRICS_FILE).exists()
    run_job(config, tmp_path, resumes=True)
    assert all(
        (tmp_path / name).exists() for name in (*ARRAYS, run_folder.METRICS_FILE)
    )


def test_a_failed_answer_lets_the_write_end(
    tiny_config: Configs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_failed, write_ranks = threading.Event(), run_folder.write_ranks

    def write_late(*arguments: Any) -> None:
        assert has_failed.wait(60)
        write_ranks(*arguments)

    def fail(*_: object, **__: object) -> None:
        has_failed.set()
        raise ArithmeticError("no answer")

    config = tiny_config("em=none")
    with (
        monkeypatch.context() as patch,
        pytest.raises(ArithmeticError, match="no answer"),
    ):
        patch.setattr(run_folder, "write_ranks", write_late)
        patch.setattr(job, "decide", fail)
        run_job(config, tmp_path)
    assert all((tmp_path / name).exists() for name in ARRAYS)
    assert not (tmp_path / run_folder.METRICS_FILE).exists()
    run_job(config, tmp_path, resumes=True)
    assert (tmp_path / run_folder.METRICS_FILE).exists()


SHORT = (
    "data.num_entities=100",
    "model.initial_epochs=4",
    "model.epochs_per_iteration=2",
)
FILES = ("alignment.tsv", "ranks.npz", "beliefs.npz", "checkpoint.safetensors")


def bits(config: DictConfig, folder: Path) -> list[bytes]:
    run_job(config, folder)
    assert not torch.are_deterministic_algorithms_enabled()
    return [(folder / name).read_bytes() for name in FILES]


@pytest.mark.parametrize("em", ["paper", "dual"])
def test_a_cpu_gives_the_same_bits_again(
    em: str, tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config(*SHORT, f"em={em}", "em.iterations=1")
    first, again = (bits(config, tmp_path / name) for name in ("first", "again"))
    assert first == again
    config.trainer.deterministic = (
        True  # asks for nothing that a CPU does not do anyway
    )
    assert bits(config, tmp_path / "deterministic") == first


@pytest.mark.gpu
@pytest.mark.parametrize("model", option_names("model"))
@pytest.mark.parametrize("em", ["paper", "dual"])
def test_a_gpu_gives_the_same_bits_again_where_asked(
    model: str, em: str, tiny_config: Configs, tmp_path: Path
) -> None:
    config = tiny_config(f"model={model}", f"em={em}", "em.iterations=1")
    config.trainer.update(accelerator="gpu", deterministic=True)
    first, again = (bits(config, tmp_path / name) for name in ("first", "again"))
    assert first == again
