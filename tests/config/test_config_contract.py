"""Every option that exists is an option that is tested."""

import inspect
import json
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from hydra.utils import get_object
from omegaconf import OmegaConf

from emea.cli.run_help import SECONDS, duration, overview, run_help
from emea.config.checks import check_config
from emea.config.command_line import check_overrides
from emea.config.composition import (
    CONF,
    PRESETS,
    composed,
    group_names,
    option_names,
    required_groups,
)
from emea.config.groups import GROUPS, OPTIONAL
from emea.data.sources.settings import OwnFilesOptions, OwnFilesSettings
from emea.em.settings import DualSettings
from experiments.batch import jobs

OPTIONS = [
    (group, option) for group in required_groups() for option in option_names(group)
]
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "seeds.tsv"
GIVEN_BY_THE_RUN = {
    *("graph", "pair", "device", "params", "source", "target", "split", "search"),
    *("visible", "decoder", "rule", "num_candidates"),
}
"""Arguments that no file holds because only the run knows them."""

OF_OTHER_SETTINGS = {
    *("keep_literals", "root", "uri", "ratio", "rules"),
    *("turns", "epochs_per_turn", "cardinality", "folder"),
}
"""Arguments whose values depend on other settings, on the environment or on the option."""


def load(group: str, option: str) -> dict[str, Any]:
    text = (CONF / group / f"{option}.yaml").read_text(encoding="utf-8")
    values: dict[str, Any] = yaml.safe_load(text)
    return values


def load_composed(group: str, option: str) -> Any:
    """The option with the options it is made of."""
    return OmegaConf.to_container(composed([f"{group}={option}"])[group])


def targets(node: Any) -> list[dict[str, Any]]:
    """Every node of a config that names a class."""
    if not isinstance(node, dict):
        return []
    found = [node] if "_target_" in node else []
    return found + [inner for value in node.values() for inner in targets(value)]


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_an_option_says_what_it_is(group: str, option: str) -> None:
    first = (
        (CONF / group / f"{option}.yaml").read_text(encoding="utf-8").splitlines()[0]
    )
    assert first.startswith("# ")
    assert len(first) > 10


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_an_option_is_called_what_its_file_is(group: str, option: str) -> None:
    values = load(group, option)
    if "name" in values and group != "data":
        assert values["name"] == option


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_keys_are_arguments_of_the_class(group: str, option: str) -> None:
    for node in targets(load_composed(group, option)):
        signature = inspect.signature(get_object(node["_target_"]))
        keys = {key for key in node if not (key.startswith("_") and key.endswith("_"))}
        if group != "data":
            keys -= {"name"}
        keys -= own_settings(signature)
        if inspect.Parameter.VAR_KEYWORD not in {
            one.kind for one in signature.parameters.values()
        }:
            assert keys <= set(signature.parameters), node["_target_"]
        bound = dict.fromkeys(keys | (GIVEN_BY_THE_RUN & set(signature.parameters)))
        signature.bind(**bound)


def own_settings(signature: inspect.Signature) -> set[str]:
    """The fields of the dataclass that a constructor takes as ``settings``."""
    taken = signature.parameters.get("settings")
    is_typed = taken is not None and is_dataclass(taken.annotation)
    return {one.name for one in fields(taken.annotation)} if is_typed else set()


@pytest.mark.parametrize(("options", "settings"), [(OwnFilesOptions, OwnFilesSettings)])
def test_typed_arguments_are_the_settings(options: Any, settings: Any) -> None:
    own = {"source", "target", "links", "test_links"}  # arguments of their own
    names = {one.name for one in fields(settings)}
    assert own | set(options.__annotations__) == names


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_constructors_have_the_defaults_of_the_settings(
    group: str, option: str
) -> None:
    others = OF_OTHER_SETTINGS | GIVEN_BY_THE_RUN
    if group == "data":
        # options of the data set these for their files
        others = others | {"name", "download", "archive", "member"}
    composed_option = composed([f"{group}={option}"])[group]
    for node in targets(OmegaConf.to_container(composed_option, resolve=True)):
        parameters = inspect.signature(get_object(node["_target_"])).parameters
        for key in (node.keys() & set(parameters)) - others:
            value = tuple(node[key]) if isinstance(node[key], list) else node[key]
            is_torch = node["_target_"].startswith("torch.")
            assert is_torch or parameters[key].default == value, (node, key)


OF_THE_METHOD = [
    one for one in OPTIONS if one[0] in (*OPTIONAL, "ensemble", "literals")
]


@pytest.mark.parametrize(("group", "option"), OF_THE_METHOD)
def test_an_option_says_where_its_values_are(group: str, option: str) -> None:
    text = (CONF / group / f"{option}.yaml").read_text(encoding="utf-8")
    inherited = [
        schema
        for name, schema in GROUPS[group].schemas.items()
        if re.search(rf"\bschema_{name}\b", text)
    ]
    for schema in inherited:
        place = schema.__module__.replace(".", "/") + ".py"
        assert f"# Values with their sources: {schema.__name__} in {place}\n" in text


def test_em_options_have_the_fields_of_its_settings() -> None:
    known = {"name", *(field.name for field in fields(DualSettings))}
    for option in option_names("em"):
        assert set(load_composed("em", option)) <= known


def test_help_of_a_group_names_its_options_and_settings() -> None:
    text = run_help(["--help", "em"])
    assert "Options:" in text and "one_to_one" in text
    assert "Settings of em=paper:" in text
    assert "em.keep=last" in text and "best: with the iteration" in text


def test_help_of_an_experiment_says_what_it_runs() -> None:
    text = run_help(["-m", "experiment=table1", "data=zh", "--help"])
    assert "In total 75 jobs." in text  # 5 variants, 5 ratios, 3 splits
    assert "About 33 min one after the other" in text and "NVIDIA H200" in text
    assert "emea_released  EMEA under the released code's protocol" in text
    assert (
        "emea run -m experiment=table1 data=zh variant=paris ratio=0.01 split_seed=0"
        in text
    )
    one = run_help(
        ["experiment=table1", "variant=emea", "data=zh,fr", "ratio=0.05", "--help"]
    )
    assert "In total 6 jobs." in one


EXPERIMENTS = [
    name for name in option_names("experiment") if "/" not in name and duration(name, 1)
]


def test_most_experiments_say_how_long_a_job_takes() -> None:
    without = {one for one in option_names("experiment") if "/" not in one}
    # no run of these is recorded
    assert without - {*EXPERIMENTS} == {"choice", "figure5", "figure8"}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_seconds_of_a_job_are_those_of_recorded_runs(name: str) -> None:
    recorded = SECONDS.search((CONF / "experiment" / f"{name}.yaml").read_text())
    study = yaml.safe_load((CONF / "experiment" / f"{name}.yaml").read_text())["study"]
    assert recorded is not None
    seconds = []
    for path in (ROOT / "experiments").glob("*/runs.jsonl"):
        with path.open(encoding="utf-8") as lines:
            for run in map(json.loads, lines):
                machine = run["tags"].get("gpu", run["tags"]["machine"])
                if run["experiment"] == study and machine in recorded["machine"]:
                    seconds.append((run["end_time"] - run["start_time"]) / 1000)
    # an experiment may be a part of its study
    low, high = np.mean(seconds) / 2, 2 * np.mean(seconds)
    assert low <= float(recorded["seconds"]) <= high


def test_help_names_every_group_and_option() -> None:
    text = overview()
    for group in group_names():
        assert f"\n  {group} " in text
        options = option_names(group)
        assert all(option in text for option in options if "/" not in option)


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        ([], (300, 50)),
        (["em=dual"], (300, 50)),
        (["data=zh"], (1200, 200)),
        (["model=lightea"], (1, 1)),
        (["model.initial_epochs=7"], (7, 50)),
    ],
)
def test_a_schedule_belongs_to_a_pair_and_a_model(
    overrides: list[str], expected: tuple[int, int]
) -> None:
    model = composed(overrides).model
    assert (model.initial_epochs, model.epochs_per_iteration) == expected


PRESET_OPTIONS = [
    (group, option) for group in PRESETS for option in option_names(group)
]


@pytest.mark.parametrize(("group", "option"), PRESET_OPTIONS)
def test_a_preset_says_what_it_is_after_where_it_belongs(
    group: str, option: str
) -> None:
    lines = (CONF / group / f"{option}.yaml").read_text(encoding="utf-8").splitlines()
    assert (
        lines[0] == "# @package _global_"
    )  # Hydra looks for it in the first line alone
    assert lines[1].startswith("# ")


@pytest.mark.parametrize("variant", option_names("variant"))
def test_a_variant_makes_a_config_that_can_run(variant: str) -> None:
    check_config(composed([f"variant={variant}"]))


@pytest.mark.parametrize(
    "experiment",
    [
        pytest.param(name, marks=() if name == "figure5" else pytest.mark.slow)
        for name in option_names("experiment")
        if not name.startswith("smoke/")
    ],
)
def test_every_kind_of_job_of_an_experiment_can_run(experiment: str) -> None:
    files = [f"data.{key}={EXAMPLE}" for key in ("source", "target", "links")]
    more = (
        files if experiment == "ontologies" else []
    )  # its files are not in the repository
    check_overrides(["-m", f"experiment={experiment}", *more])
    assert jobs(experiment, more)
