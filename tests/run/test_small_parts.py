"""Names and tables."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from omegaconf import DictConfig, open_dict
from rich.console import Console

from emea.config.paths import check_paths
from emea.record.run_folder import finite
from emea.record.run_header import sweep_name
from emea.record.run_record import flat_params
from emea.run.observer import flattened
from emea.run.result_table import prediction_lines, result_table

Configs = Callable[..., DictConfig]


def test_params_are_flat() -> None:
    nested = {"a": {"b": 1, "c": [1, 2]}, "d": None}
    assert flat_params(nested) == {"a.b": 1, "a.c": "[1, 2]", "d": None}


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("multirun/2022-12-07/09-00-00", "2022-12-07/09-00-00"),
        ("/home/me/multirun/margins", "margins"),
        ("outputs/margins", "margins"),
        ("multirun", "multirun"),
    ],
)
def test_sweeps_go_by_their_folder(folder: str, name: str) -> None:
    assert sweep_name(Path(folder)) == name


def test_numbers_are_flattened_by_path() -> None:
    entry = {
        "iteration": 3,
        "neural": {"hit@1": 0.5},
        "joint": None,
        "nan": float("nan"),
        "n": 2,
    }
    assert flattened(entry) == {"neural/hit@1": 0.5, "n": 2.0}


def test_json_gets_none_for_what_is_no_number() -> None:
    node = {"a": [1.5, float("nan")], "b": {"c": float("inf")}, "d": "text"}
    assert finite(node) == {"a": [1.5, None], "b": {"c": None}, "d": "text"}


NAMES = {"method": "emea", "model": "rrea", "data": "zh"}


def test_the_table_says_whether_test_links_were_seen() -> None:
    scores = {"hit@1": 0.5, "hit@10": 0.9, "mrr": 0.6, "mr": 3.0}
    stage = {**scores, "all_targets": scores}
    for protocol, words in (
        ("strict", "saw no test links"),
        ("released", "USED TEST LINKS"),
        ("mine", "MAY HAVE USED test links"),
    ):
        stream = StringIO()
        metrics = {**NAMES, "protocol": protocol, "initial": stage, "final": stage}
        Console(file=stream, width=120).print(result_table(metrics))
        assert words in stream.getvalue()
        assert "0.5000" in stream.getvalue()


def test_without_test_links_the_validation_score_is_shown() -> None:
    history = [{"validation": {"hit@1": hit}} for hit in (0.25, 0.75, 0.5)]
    others = {**NAMES, "num_links": {"validation": 8}, "answer": {"decoder": "none"}}
    assert "validation Hit@1 0.5000" in prediction_lines({**others, "history": history})


def test_what_another_reader_calls_a_source_need_be_no_file(
    tiny_config: Configs,
) -> None:
    config = tiny_config()
    with open_dict(config):
        config.data.update(
            {"_target_": "my_reader.read", "source": "wikidata", "links": None}
        )
    check_paths(config)
