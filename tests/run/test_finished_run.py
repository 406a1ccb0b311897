import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from omegaconf import DictConfig

from emea.answer.curation import Curated, write_decisions
from emea.errors import ConfigError, DataError, UserError
from emea.record.checked_files import read_checked_arrays, write_checked_arrays
from emea.record.run_folder import record_checksums
from emea.run.finished_run import load_run
from emea.run.job import run_job

from ..small_runs import tiny_config_of
from ..unsigned_files import replace_in, unsigned

Configs = Callable[..., DictConfig]

KINDS = {
    "paper": ("em.iterations=1",),
    "dual": ("em=dual", "em.iterations=1"),
    "none": ("em=none", "rule=none"),
    "paris": ("method=paris",),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_comes_back_with_what_it_answered(
    kind: str, tiny_config: Configs, tmp_path: Path
) -> None:
    metrics = run_job(tiny_config(*KINDS[kind], "decoding=greedy"), tmp_path).metrics
    run = load_run(tmp_path)
    best, probs = run.beliefs.best_targets(), run.beliefs.probs.max(1).values
    lines = (tmp_path / "alignment.tsv").read_text().splitlines()[1:]
    names = [
        f"{run.pair.source.entity_name(source)}\t{run.pair.target.entity_name(int(best[source]))}"
        for source in torch.nonzero(probs).flatten().tolist()
    ]
    assert ["\t".join(line.split("\t")[:2]) for line in lines] == names
    assert run.metrics["final"] == metrics["final"]
    assert len(run.split.test) == metrics["num_links"]["test"]


def test_changed_data_is_refused(tiny_config: Configs, tmp_path: Path) -> None:
    run_job(tiny_config("em=none", "rule=none"), tmp_path)
    config = tmp_path / "config.yaml"
    replace_in(config, "triples_per_entity: 4.5", "triples_per_entity: 5.0")
    with pytest.raises(DataError, match="changed since the run"):
        load_run(tmp_path)


def test_an_unfinished_run_is_refused(tiny_config: Configs, tmp_path: Path) -> None:
    run_job(tiny_config("em=none", "rule=none"), tmp_path)
    replace_in(tmp_path / "run.json", '"FINISHED"', '"FAILED"')
    with pytest.raises(DataError, match="is not a finished run"):
        load_run(tmp_path)
    with pytest.raises(UserError, match="not a run's folder"):
        load_run(tmp_path / "nowhere")


def test_a_strangers_config_cannot_vouch_for_itself(
    tiny_config: Configs, tmp_path: Path
) -> None:
    run_job(tiny_config("em=none", "rule=none"), tmp_path)
    file = tmp_path / "config.yaml"
    replace_in(file, "emea.data.sources.synthetic.synthetic_pair", "os.system")
    replace_in(file, "trust: []", "trust: [os]")
    with pytest.raises(ConfigError, match=r"data._target_ names os.system"):
        load_run(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished run."""
    folder = tmp_path_factory.mktemp("whole")
    run_job(tiny_config_of("em=none", "rule=none"), folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("config.yaml", b"- 1\n", r"config\.yaml is damaged: it contains no settings"),
        (
            "config.yaml",
            b"a: [\n",
            r"config\.yaml is damaged: .*line 2: the YAML cannot be read",
        ),
        (
            "config.yaml",
            b"a: " + b"[" * 1000,
            r"config\.yaml is damaged: .*nested too deeply",
        ),
        (
            "config.yaml",
            b"a: ${b}\n",
            r"config\.yaml is damaged: it contains an interpolation",
        ),
        ("config.yaml", b"\xff", r"config\.yaml is damaged: "),
        (
            "config.yaml",
            b"a: 1\n",
            r"config\.yaml is damaged: it does not say which data the run used",
        ),
        ("config.yaml", b"data: 3\n", r"config\.yaml is damaged"),
        ("config.yaml", None, r"has no config\.yaml"),
        ("metrics.json", b"{", r"metrics\.json is damaged: "),
        ("metrics.json", b"{}", r"metrics\.json is damaged: it lacks the history"),
        ("metrics.json", None, r"metrics\.json cannot be read: No such file"),
        (
            "beliefs.npz",
            b"PK\x03\x04",
            r"beliefs\.npz is damaged: File is not a zip file",
        ),
    ],
)
def test_a_damaged_file_is_reported(
    folder: Path, name: str, content: bytes | None, sentence: str
) -> None:
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_bytes(content)
    with pytest.raises(DataError, match=sentence):
        load_run(folder)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("targets", lambda array: array + 10**6, "its beliefs are not about synthetic"),
        ("targets", lambda array: array[:-1], "its beliefs are not about synthetic"),
        ("targets", lambda array: array + 0.5, "its beliefs are not about synthetic"),
        (
            "neural_probs",
            lambda array: array * np.nan,
            "its beliefs are not about synthetic",
        ),
        (
            "neural_probs",
            lambda array: np.array(["x"]),
            "its beliefs are not about synthetic",
        ),
        ("neural_probs", None, "it contains no beliefs"),
        ("labels", lambda array: array[:, 0], "its labels are not links of synthetic"),
        ("labels", lambda array: np.array(1), "its labels are not links of synthetic"),
    ],
)
def test_beliefs_about_other_graphs_are_reported(
    folder: Path,
    name: str,
    change: Callable[[np.ndarray], np.ndarray] | None,
    sentence: str,
) -> None:
    with np.load(folder / "beliefs.npz") as file:
        arrays = {key: file[key] for key in file.files}
    array = arrays.pop(name)
    np.savez(
        folder / "beliefs.npz",
        **arrays,
        **({} if change is None else {name: change(array)}),
    )
    with pytest.raises(DataError, match=rf"beliefs\.npz .*{sentence}"):
        load_run(folder)


def test_a_run_of_other_data_need_not_say_which(folder: Path) -> None:
    header = json.loads(unsigned(folder / "run.json"))
    del header["tags"]["data_checksum"]
    (folder / "run.json").write_text(json.dumps(header))
    with pytest.raises(DataError, match="changed since the run"):
        load_run(folder)


@pytest.mark.parametrize("group", ["model", "training", "trainer"])
def test_a_config_without_a_group_is_reported(folder: Path, group: str) -> None:
    whole = yaml.safe_load(unsigned(folder / "config.yaml"))
    left = {name: value for name, value in whole.items() if name != group}
    (folder / "config.yaml").write_text(yaml.safe_dump(left))
    with pytest.raises(
        DataError, match=rf"config\.yaml has no {group}\. The file is damaged"
    ):
        load_run(folder)


def rewritten_beliefs(folder: Path, change: Callable[[np.ndarray], np.ndarray]) -> None:
    """Change the candidates of the beliefs, and write a valid checksum."""
    path = folder / "beliefs.npz"
    arrays = read_checked_arrays(path)
    arrays["targets"] = change(arrays["targets"])
    write_checked_arrays(path, **arrays)


def test_beliefs_are_those_of_the_run(folder: Path) -> None:
    rewritten_beliefs(folder, lambda targets: targets[:, ::-1].copy())
    with pytest.raises(DataError, match=r"beliefs\.npz .*not the file of this run"):
        load_run(folder)
    record_checksums(folder)
    load_run(folder)


def test_an_entity_has_each_candidate_once(folder: Path) -> None:
    def repeated(targets: np.ndarray) -> np.ndarray:
        targets = targets.copy()
        targets[:, 1] = targets[:, 0]
        return targets

    rewritten_beliefs(folder, repeated)
    with pytest.raises(DataError, match="has the same candidate twice"):
        load_run(folder)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "does not consist of the columns"),
        ("source\ttarget\tdecision\tauthor\tdate\n", "does not consist of the col"),
        ("a\tb\tc\td\te\nx\ty\taccepted\t\t\n", "does not consist of the columns"),
        (
            "source\ttarget\tdecision\tauthor\tdate\nx\ty\trejected\t\t\n",
            "not the file of this run",
        ),
        (None, "it is missing"),
    ],
)
def test_decisions_are_those_of_the_run(
    folder: Path, content: str | None, sentence: str
) -> None:
    one = Curated("a", "b", "accepted", "me", "2026-01-01")
    write_decisions(folder, [one])
    record_checksums(folder)
    assert list(load_run(folder).decisions) == [one]
    write_decisions(folder, [])
    if content is not None:
        (folder / "decisions.tsv").write_text(content)
    with pytest.raises(DataError, match=rf"decisions\.tsv is damaged: .*{sentence}"):
        load_run(folder)
