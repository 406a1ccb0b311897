"""Every option that exists is an option that is tested."""

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra.utils import get_object
from omegaconf import OmegaConf

from emea.cli.run import help_text
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
from emea.config.settings.em import DualEMSettings
from experiments.batch import jobs

OPTIONS = [(group, option) for group in required_groups() for option in option_names(group)]
EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "seeds.tsv"
GIVEN_BY_THE_RUN = {
    *("graph", "pair", "device", "params", "source", "target", "split", "search"),
    *("visible", "decoder", "rule", "num_candidates"),
}
"""Arguments that no file holds because only the run knows them."""


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
    first = (CONF / group / f"{option}.yaml").read_text(encoding="utf-8").splitlines()[0]
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
        if inspect.Parameter.VAR_KEYWORD not in {one.kind for one in signature.parameters.values()}:
            assert keys <= set(signature.parameters), node["_target_"]
        bound = dict.fromkeys(keys | (GIVEN_BY_THE_RUN & set(signature.parameters)))
        signature.bind(**bound)


def test_em_options_have_the_fields_of_its_settings() -> None:
    known = {"name", *(field.name for field in fields(DualEMSettings))}
    for option in option_names("em"):
        assert set(load_composed("em", option)) <= known


def test_help_names_every_group_and_option() -> None:
    text = help_text()
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


PRESET_OPTIONS = [(group, option) for group in PRESETS for option in option_names(group)]


@pytest.mark.parametrize(("group", "option"), PRESET_OPTIONS)
def test_a_preset_says_what_it_is_after_where_it_belongs(group: str, option: str) -> None:
    lines = (CONF / group / f"{option}.yaml").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# @package _global_"  # Hydra looks for it in the first line alone
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
    more = files if experiment == "ontologies" else []  # its files are not in the repository
    check_overrides(["-m", f"experiment={experiment}", *more])
    assert jobs(experiment, more)
