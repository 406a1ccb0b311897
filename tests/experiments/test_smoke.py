"""Every experiment runs from end to end, on the smallest pair and for a few steps."""

from pathlib import Path

import pytest

from emea.config.command_line import sweep_params
from emea.config.composition import composed, option_names
from emea.data.sources.synthetic import synthetic_pair
from emea.run.job import run_job
from experiments.batch import jobs
from experiments.report.studies.openea import PAIRS

ON_NAMES = ("literals", "literals_no_links")
"""Experiments on names, which the synthetic pair does not have."""

ON_FOLDERS = ("openea", "choice", "dangling", "ontologies", "suite")
"""Experiments on official folds, deleted entities or own files, instead of the synthetic pair."""

EXPERIMENTS = [
    name
    for name in option_names("experiment")
    if "/" not in name and name not in (*ON_NAMES, *ON_FOLDERS)
]
EVERYWHERE = {"data", "ratio", "split_seed"}


def test_each_experiment_has_a_smoke_variant_and_a_folder() -> None:
    small = [
        name.removeprefix("smoke/")
        for name in option_names("experiment")
        if "/" in name
    ]
    assert small == EXPERIMENTS
    folders = {path.parent.name for path in Path("experiments").glob("*/results.md")}
    # literals has the runs of both experiments on names; dangling needs pairs that a tool makes,
    # ontologies are own files, and choice and suite have official folds
    others = {"literals", "dangling", "ontologies", "choice", "suite"}
    assert folders == {*EXPERIMENTS, *others}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_smoke_variant_sweeps_over_what_the_experiment_does(
    experiment: str,
) -> None:
    whole, small = (sweep_params(name) for name in (experiment, f"smoke/{experiment}"))
    for key in whole.keys() - EVERYWHERE:
        assert small[key] == whole[key]


def write_named_pair(folder: Path) -> None:
    """Write a small pair in OpenEA's layout, in which counterparts have the same local name."""
    pair = synthetic_pair(num_entities=120)
    folder.mkdir()
    for number, graph in enumerate((pair.source, pair.target), 1):
        entities = range(graph.num_entities)
        # the name of a target entity is that of its counterpart, or a number beyond all of them
        own = (
            {e: e for e in entities}
            if number == 1
            else dict(pair.links[:, ::-1].tolist())
        )
        names = [
            f"http://{number}.org/Name_of_{own.get(e, 1000 + e)}" for e in entities
        ]
        rows = [f"{names[h]}\tr{r}\t{names[t]}\n" for h, r, t in graph.triples.tolist()]
        (folder / f"rel_triples_{number}").write_text("".join(rows))
    links = [
        f"http://1.org/Name_of_{a}\thttp://2.org/Name_of_{a}\n" for a, _ in pair.links
    ]
    (folder / "ent_links").write_text("".join(links))


@pytest.mark.parametrize(
    "experiment",
    [pytest.param("literals", marks=pytest.mark.slow), "literals_no_links"],
)
def test_experiments_on_names_find_equal_names(experiment: str, tmp_path: Path) -> None:
    write_named_pair(tmp_path / "pair")
    small = [
        "tracking=none",
        "data=openea",
        f"data.folder={tmp_path / 'pair'}",
        "trainer=cpu",
    ]
    small += ["model.encoder.dim=32", "em.iterations=1"]
    small += ["model.initial_epochs=20", "model.epochs_per_iteration=5"]
    if experiment == "literals":
        small += ["split.num_validation=10", "ratio=0.3"]
    for number, job in enumerate(jobs(experiment, [*small, "skip_recorded=false"])):
        config = composed(job)
        assert config.literals.name == "similar" and config.data.iri_names
        metrics = run_job(config, tmp_path / str(number)).metrics
        assert metrics["final"]["hit@1"] > 0.9
        assert metrics["literals"]["num_anchors"] > 50


def test_the_experiment_on_official_folds_has_every_method_and_fold() -> None:
    found = jobs(ON_FOLDERS[0], [])
    assert len(found) == len({tuple(job) for job in found}) == 7 * 3 * 5
    configs = [composed(job) for job in found if "data.fold=1" in job]
    assert {config.data.folder.split("/")[-1] for config in configs} == set(PAIRS)
    assert {config.split.name for config in configs} == {"official"}
    chosen = {
        (c.method.name, c.model.name, c.em.name, c.ensemble.name) for c in configs
    }
    assert len(chosen) == 7 and ("emea", "rrea", "one_to_one", "independent") in chosen


@pytest.mark.parametrize(
    "experiment",
    [
        pytest.param(name, marks=() if name == "figure5" else pytest.mark.slow)
        for name in EXPERIMENTS
    ],
)
def test_it_runs(experiment: str, tmp_path: Path) -> None:
    for number, job in enumerate(jobs(f"smoke/{experiment}", ["tracking=none"])):
        metrics = run_job(composed(job), tmp_path / str(number)).metrics
        assert 0 <= metrics["final"]["hit@1"] <= 1
