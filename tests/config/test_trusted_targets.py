from pathlib import Path

import pytest

from emea.config.checks import check_config
from emea.config.composition import composed
from emea.config.instantiate import untrusted_targets
from emea.errors import ConfigError
from emea.record.pair_file import load_pair

HOSTILE = [
    "model.encoder._target_=os.system",
    "model.optimizer._target_=subprocess.Popen",
    "tracking._target_=builtins.eval",
    "data._target_=emeas.data.read",
    "rule._target_=emea",
    "+rule.nested.deep=[{_target_:os.system}]",
    "model.encoder._target_=${study}",
    "data._target_=emea.data.graph.np.save",  # by way of what a module of ours imports
    "data._target_=emea.data.sources.download.ensure_downloaded",  # contacts any host
    "data._target_=emea.record.checked_files.write_atomic",
    "model.optimizer._target_=torch.optim.adam.torch.load",
]


@pytest.mark.parametrize("override", HOSTILE)
def test_a_class_from_elsewhere_is_refused(override: str) -> None:
    with pytest.raises(ConfigError, match=r"_target_ names ") as refused:
        check_config(composed([override]))
    # trust never helps with a module of emea
    is_ours = "_target_=emea." in override
    assert ("trust=" in str(refused.value)) != is_ours


def test_a_class_of_an_earlier_version_is_explained() -> None:
    config = composed([])
    config.model.objective._target_ = "emea.encoders.margin_objective.MarginObjective"
    (told,) = untrusted_targets(config)
    assert "another version of emea wrote that run" in told
    assert "run.json has its commit and its command" in told


def test_a_module_the_user_vouches_for_is_taken() -> None:
    own = "model.encoder._target_=mine.encoders.Mine"
    assert list(untrusted_targets(composed([own, "trust=[mine.encoders]"]))) == []
    assert list(untrusted_targets(composed([own, "trust=[mine]"]))) == []
    (told,) = untrusted_targets(composed([own, "trust=[min]"]))
    assert "trust=[mine.encoders]" in told


@pytest.mark.parametrize(
    "option", ["rrea", "dual_amn", "alinet", "iptranse", "lightea"]
)
def test_all_that_is_ours_is_taken(option: str) -> None:
    config = composed(
        [f"model={option}", "em=dual", "rule=paris_avoid_conflict", "tracking=none"]
    )
    assert list(untrusted_targets(config)) == []


HIDDEN = "{_target_: emea.record.checked_files.write_atomic, _args_: [%s, hello]}"


@pytest.mark.parametrize("escape", ["", "\\"])
def test_a_class_that_appears_when_text_is_resolved_is_refused(
    escape: str, tmp_path: Path
) -> None:
    target = tmp_path / "written"
    config = composed(["em=none", "rule=none"])
    config.data.num_entities = f"{escape}${{oc.decode:'{HIDDEN % target}'}}"
    with pytest.raises(
        ConfigError, match=r"names emea\.record|contains an interpolation"
    ):
        load_pair(config)
    assert not target.exists()
