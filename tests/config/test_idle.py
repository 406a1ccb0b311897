"""Settings without effect are refused, and those that have one pass."""

import pytest

from emea.config.checks import unused_settings
from emea.config.command_line import check_overrides
from emea.config.composition import composed
from emea.config.settings.conditions import uses_two_way
from emea.errors import ConfigError

PAPER_SETTINGS = ("em.ridge=0.1", "em.m_step=pseudolikelihood")
PAPER_SETTINGS += ("rule.markov_blanket=true",)


@pytest.mark.parametrize("setting", PAPER_SETTINGS)
def test_settings_of_the_papers_steps_under_dual(setting: str) -> None:
    key = setting.partition("=")[0]
    with pytest.raises(ConfigError, match=rf"^{key} has no effect here: em=dual replaces the pap"):
        check_overrides(["em=dual", setting])
    check_overrides([setting])
    check_overrides(["em=dual", "em.two_way=null", setting])
    check_overrides(["-m", "em=dual,paper", setting])


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["method=paris", "em.iterations=3"], "method=paris does not use em"),
        (["method=prase", "training.turns=3"], "method=prase does not use training"),
        (["method=paris", "decoding=hungarian", "decoding.unmatched_prob=0.3"], "not use decoding"),
        (["method=prase", "model.epochs_per_iteration=3"], "there are no EM iterations"),
        (["em=none", "rule.markov_blanket=true"], "em=none with em.iterations=0 does not reason"),
        (["em.iterations=0", "em.ridge=0.1"], "em=paper with em.iterations=0 does not reason"),
        (["em=none", "rule=none", "model.restart=true"], "there are no EM iterations"),
        (["model.epochs_per_turn=5"], "training=sup has no turns"),
        (["model=alinet", "model.epochs_per_iteration=5"], "model.restart=true trains"),
        (["initial_from=run.py", "model.initial_epochs=5"], "replaces the first training"),
        (["data=openea", "split=official", "ratio.value=0.3"], "official does not use a ratio"),
        (["data=openea", "data.fold=2"], "split=random does not use the official split"),
        (["split.num_validation=0", "split.validation_from=train"], "draws no validation links"),
        (["protocol=released", "protocol.test_pool=true"], "only em=dual restricts"),
        (["rule=avoid_conflict", "em.evidence=dense"], "only the PARIS rule uses the evidence"),
    ],
)
def test_a_setting_without_effect_is_refused(arguments: list[str], reason: str) -> None:
    key = arguments[-1].partition("=")[0]
    with pytest.raises(ConfigError, match=f"^{key} has no effect here: .*{reason}.*Leave {key} ou"):
        check_overrides(arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ["training=semi", "model.epochs_per_turn=5"],
        ["data=openea", "split=official", "data.fold=2"],
        ["initial_from=run.py", "model.initial_epochs=5", "model.restart=true"],
        ["protocol=released", "em=dual", "protocol.test_pool=true"],
        ["em=dual", "em.two_way.ridge=0.1", "em.num_candidates=5"],
        ["em=dual", "~em.ridge"],
        ["em=none", "rule=none", "em.num_candidates=5"],
        ["method=prase", "model.initial_epochs=5", "search=kmeans", "search.num_probes=3"],
    ],
)
def test_a_setting_with_an_effect_passes(arguments: list[str]) -> None:
    check_overrides(arguments)


def test_the_choice_of_an_unused_option_is_only_warned_about() -> None:
    for typed in (["method=paris", "model=rrea"], ["data=openea", "split=official", "ratio='0.3'"]):
        check_overrides(typed)
        assert list(unused_settings(composed(typed), typed)) == [typed[-1].partition("=")[0]]


def test_a_sweep_is_refused_only_if_no_job_uses_the_setting() -> None:
    # aligned, the options give (dual, emea) and (paper, paris), where ridge has no effect
    check_overrides(["-m", "em=dual,paper", "method=emea,paris", "em.ridge=0.1", "seed=0,1,2"])
    check_overrides(["-m", "variant=paris,emea", "em.iterations=3"])
    with pytest.raises(ConfigError, match=r"em\.ridge has no effect"):
        check_overrides(["-m", "em=dual", "method=emea,paris", "em.ridge=0.1,0.2", "seed=0,1,2"])


def test_defaults_of_a_command_may_be_without_effect() -> None:
    check_overrides(["em.iterations=3", "method=paris"], defaults=["em.iterations=3"])


def test_two_way_replaces_the_papers_steps_where_its_settings_say_so() -> None:
    assert uses_two_way(composed(["em=dual"]))
    assert not uses_two_way(composed(["em=dual", "em.two_way=null"]))
    assert not uses_two_way(composed(["em=dual", "em.iterations=0"]))
