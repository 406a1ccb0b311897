"""Any run folder or command line is either read or rejected with a one-sentence error."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from omegaconf import DictConfig, OmegaConf

from emea.config.composition import composed
from emea.record.pair_file import write_pair
from emea.run.finished_run import FinishedRun, load_run
from emea.run.job import run_job

from ..mutated_files import changed_json, damaged, few_or_many, fuzz
from ..unsigned_files import unsigned

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
SETTINGS = (
    "data=files",
    f"data.source={EXAMPLES / 'atlas.nt'}",
    f"data.target={EXAMPLES / 'karte.ttl'}",
    f"data.links={EXAMPLES / 'seeds.tsv'}",
    f"data.test_links={EXAMPLES / 'test.tsv'}",
    "model=lightea",
    "em.iterations=1",
    "trainer=cpu",
    "tracking=none",
)


@pytest.fixture(scope="module")
def config() -> DictConfig:
    return composed(SETTINGS)


@pytest.fixture(scope="module")
def finished(config: DictConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    run_job(config, folder)
    return folder


@few_or_many(4, 300)
@pytest.mark.parametrize(
    "name", ["run.json", "config.yaml", "metrics.json", "beliefs.npz", "pair.npz"]
)
def test_folders_of_runs(
    finished: Path, tmp_path: Path, name: str, num_examples: int
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(finished, folder)
    if name == "pair.npz":  # a run of the synthetic data has none of its own
        write_pair(folder / name, load_run(folder).pair)
    whole = unsigned(folder / name)

    def read(content: bytes) -> None:
        (folder / name).write_bytes(content)
        check_run(load_run(folder))

    contents = damaged(whole)
    if name.endswith(".json"):
        contents |= changed_json(json.loads(whole))
    if name == "config.yaml":  # JSON is YAML, too
        contents |= changed_json(OmegaConf.to_container(OmegaConf.load(folder / name)))
    if name.endswith(".npz"):
        contents |= changed_arrays(whole)
    fuzz(contents, read, num_examples)


@st.composite
def changed_arrays(draw: Any, content: bytes) -> bytes:
    """A file of arrays in which one is another, or missing."""
    with np.load(io.BytesIO(content)) as file:
        arrays = {name: file[name] for name in file.files}
    name = draw(st.sampled_from(sorted(arrays)))
    arrays[name] = draw(st.sampled_from([*others(arrays[name]), None]))
    file = io.BytesIO()
    np.savez(file, **{key: value for key, value in arrays.items() if value is not None})
    return file.getvalue()


def others(array: np.ndarray) -> list[np.ndarray]:
    """Arrays of other shapes, kinds and values."""
    if not array.size:
        return [np.zeros(3), np.zeros((2, 2), dtype=np.int64)]
    return [
        array[:-1],
        array.ravel(),
        array[None],
        array[:0],
        array.astype(np.float32) + 0.5,
        array.astype(np.int32),
        array.astype(np.int64) - 10**6,
        array.astype(np.int64) + 10**6,
        np.full_like(array, np.nan, dtype=np.float64),
        np.array(1.0),
    ]


def check_run(run: FinishedRun) -> None:
    num_source, num_target = run.pair.source.num_entities, run.pair.target.num_entities
    assert isinstance(run.metrics, dict)
    assert isinstance(run.config, DictConfig)
    assert run.beliefs.targets.shape == run.beliefs.probs.shape
    for beliefs in (run.neural, run.joint):
        if beliefs is not None:
            assert beliefs.num_source == num_source
            check_ids(beliefs.targets, num_target)
            assert bool((beliefs.probs >= 0).all())
    assert run.labels.shape == (len(run.labels), 2)
    check_ids(run.labels[:, 0], num_source)
    check_ids(run.labels[:, 1], num_target)


def check_ids(ids: torch.Tensor, size: int) -> None:
    assert ids.dtype == torch.int64
    assert not len(ids) or (int(ids.min()) >= 0 and int(ids.max()) < size)
