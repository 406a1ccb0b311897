"""Whole runs on the user's own files: with test links, and without any."""

import json
from pathlib import Path

import pytest
from omegaconf import DictConfig

from emea.config.composition import composed
from emea.errors import UserError
from emea.run.job import run_job
from emea.run.result_table import print_results

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
SHORT = (
    "model.initial_epochs=4",
    "model.epochs_per_iteration=2",
    "em.iterations=1",
    "trainer=cpu",
    "trainer.block_size=8",
    "tracking=none",
)
TEST_LINKS = f"data.test_links={EXAMPLES / 'test.tsv'}"


def config_of(
    *overrides: str,
    source: Path = EXAMPLES / "atlas.nt",
    target: Path = EXAMPLES / "karte.ttl",
    links: Path = EXAMPLES / "seeds.tsv",
) -> DictConfig:
    files = (f"data.source={source}", f"data.target={target}", f"data.links={links}")
    return composed(["data=files", *files, *SHORT, *overrides])


def run(config: DictConfig, folder: Path) -> dict:
    print_results(run_job(config, folder))
    metrics: dict = json.loads((folder / "metrics.json").read_text())
    return metrics


METHODS = [
    ("em=paper",),
    ("em=dual", "model=lightea", "model.encoder.dim=64", "decoding=hungarian"),
    ("em=none", "rule=none", "em.iterations=0"),
    ("method=prase",),
]
OTHER_METHODS = [
    ("em=dual",),
    ("training=semi", "++training.epochs_per_turn=1"),
    ("method=paris",),
    ("split.num_validation=0",),
    ("search=one_pass",),
]


@pytest.mark.parametrize(
    "options",
    [
        *(pytest.param(one, id=" ".join(one)) for one in METHODS),
        *(
            pytest.param(one, id=" ".join(one), marks=pytest.mark.slow)
            for one in OTHER_METHODS
        ),
    ],
)
def test_without_test_links_a_run_predicts(
    options: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = run(config_of(*options), tmp_path)
    assert metrics["num_links"]["test"] == 0
    assert metrics["split"] == "known" and metrics["ratio"] is None
    for stage in ("initial", "final", "final_reverse"):
        assert metrics[stage]["hit@1"] is None
        assert metrics[stage]["all_targets"]["hit@1"] is None
    assert metrics["answer"]["f1"] is None
    assert metrics["calibration"]["ece"] is None
    assert metrics["compatibility"]["final"]["mean"] is None
    lines = (tmp_path / "alignment.tsv").read_text().splitlines()
    assert len(lines) > 20
    assert all(line.startswith("http://atlas.example.org/place/") for line in lines[1:])
    shown = capsys.readouterr().out
    assert "no test links, nothing was evaluated" in shown
    assert "validation Hit@1" in shown and "nan" not in shown
    answered = metrics["export"]["num_answered"]
    assert shown.count("atched") == 1 and f"Matched {answered} of " in shown
    assert "with an answer" not in shown and "of 0 test links" not in shown


def test_with_test_links_a_run_is_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    metrics = run(config_of(TEST_LINKS), tmp_path)
    assert metrics["num_links"] == {"train": 16, "validation": 4, "test": 42}
    assert 0 <= metrics["final"]["hit@1"] <= 1
    assert "Hit@10" in capsys.readouterr().out
    assert "literals left out" in caplog.text
    assert "entities with literals only" in caplog.text


def test_a_baseline_answers_with_no_rejected_pair(tmp_path: Path) -> None:
    rejected = (EXAMPLES / "test.tsv").read_text()
    (tmp_path / "rejected.tsv").write_text(rejected)
    config = config_of("method=paris", f"data.rejected={tmp_path / 'rejected.tsv'}")
    warnings = run(config, tmp_path / "run")["warnings"]
    assert not any("rejected" in text for text in warnings)
    run(config_of("method=paris"), tmp_path / "without")
    pairs = {tuple(line.split("\t")) for line in rejected.splitlines()[1:]}
    found = [
        {
            tuple(line.split("\t")[:2])
            for line in (folder / "alignment.tsv").read_text().splitlines()
        }
        for folder in (tmp_path / "run", tmp_path / "without")
    ]
    assert not found[0] & pairs
    assert len(found[1] & pairs) > 10


@pytest.mark.parametrize("em", ["paper", "dual"])
def test_test_links_change_no_prediction(em: str, tmp_path: Path) -> None:
    run(config_of(f"em={em}"), tmp_path / "without")
    run(config_of(f"em={em}", TEST_LINKS), tmp_path / "with")
    answers = [
        (tmp_path / name / "alignment.tsv").read_bytes() for name in ("without", "with")
    ]
    assert answers[0] == answers[1]


@pytest.mark.slow
def test_released_needs_test_links(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="needs test links, but there are none"):
        run_job(config_of("protocol=released"), tmp_path)
    assert (
        run(config_of("protocol=released", TEST_LINKS), tmp_path)["protocol"]
        == "released"
    )


def some_links(path: Path, num_links: int) -> Path:
    lines = (EXAMPLES / "seeds.tsv").read_text().splitlines()
    path.write_text("\n".join(lines[: num_links + 1]))
    return path


def test_few_links_are_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    links = some_links(tmp_path / "seeds.tsv", 2)
    metrics = run(config_of(links=links), tmp_path / "run")
    assert metrics["num_links"] == {"train": 2, "validation": 0, "test": 0}
    assert "only 2 training links" in caplog.text


def test_one_link_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has 1 link to learn from, which is too few"):
        run_job(
            config_of(links=some_links(tmp_path / "seeds.tsv", 1)), tmp_path / "run"
        )


def test_graphs_of_one_relation_that_share_nothing(tmp_path: Path) -> None:
    chain = "".join(f"a{i}\tnext\ta{i + 1}\n" for i in range(30))
    star = "".join(f"hub\thas\tb{i}\n" for i in range(30))
    (tmp_path / "a.tsv").write_text(chain)
    (tmp_path / "b.tsv").write_text(star)
    (tmp_path / "seeds.tsv").write_text("".join(f"a{i}\tb{i}\n" for i in range(12)))
    source, target, links = (tmp_path / f"{name}.tsv" for name in ("a", "b", "seeds"))
    config = config_of(source=source, target=target, links=links)
    assert run(config, tmp_path / "run")["final"]["hit@1"] is None


@pytest.mark.slow
def test_a_thousand_isolated_entities(tmp_path: Path) -> None:
    text = (EXAMPLES / "atlas.nt").read_text()
    name = "<http://www.w3.org/2000/01/rdf-schema#label>"
    text += "".join(
        f'<http://atlas.example.org/place/x{i}> {name} "x" .\n' for i in range(1000)
    )
    (tmp_path / "atlas.nt").write_text(text)
    config = config_of("data.keep_isolated=true", source=tmp_path / "atlas.nt")
    metrics = run(config, tmp_path / "run")
    assert (
        metrics["answer"]["num_predicted"] + metrics["answer"]["num_unmatched"] > 1000
    )


def test_files_that_are_not_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"data\.source must name a file"):
        run_job(composed(["data=files"]), tmp_path)


def test_the_split_can_be_chosen() -> None:
    assert composed(["data=files"]).split.name == "known"
    assert composed(["data=files", "split=random"]).split.name == "random"
    assert composed([]).split.name == "random"
