import hydra
import pytest
from omegaconf import OmegaConf

from emea.config import composition
from emea.config.command_line import (
    MOST_CHARACTERS,
    check_flags,
    check_overrides,
    settings_last,
    sweep_flag_first,
    sweep_params,
    with_sweep,
)
from emea.config.composition import composed, quote_numeric_choices
from emea.em.match_model import COMPETITION, PRIORS, UNMATCHED
from emea.em.settings import ALL_FEATURES, FEATURES
from emea.errors import ConfigError
from emea.explain.explainer import MEANINGS
from experiments.batch import jobs


def test_numeric_choices_of_ratio_are_quoted() -> None:
    given = [
        "-m",
        "ratio=0.01,0.30",
        "data=zh",
        "seed=1",
        "ratio.value=0.07",
        "ratio=abc",
    ]
    quoted = [
        "-m",
        "ratio='0.01','0.3'",
        "data=zh",
        "seed=1",
        "ratio.value=0.07",
        "ratio=abc",
    ]
    assert quote_numeric_choices(given) == quoted


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["data=zh"],
        ["-m", "data=dbp15k_zh,fr,ja", "ratio=0.01,0.05"],
        ["ratio.value=0.07"],
        ["+model.encoder.extra=3"],
        ["em=none", "rule=none"],
        ["training=semi", "training.turns=2", "model.restart=true"],
        ["model.early_stopping={every:10,patience:2}"],
        ["model.optimizer._target_=torch.optim.Adam", "~model.optimizer.alpha"],
        ["~model.restart"],
    ],
)
def test_good_command_lines_pass(arguments: list[str]) -> None:
    check_overrides(quote_numeric_choices(arguments))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["ratio.value=0.07,1.5,0.2"],
            "ratio.value must be a number above 0 and below 1",
        ),
        (["data=zh,openea", "data.fold=2"], "There is no key data.fold"),
        (["em=paper,none", "em.ridge=0.1"], "There is no key em.ridge"),
        (["data=glob(dbp*)"], "List the values, separated by commas"),
        (["em=none", "em.iterations=3"], "em=none has no iterations"),
        (
            ["model.early_stopping={every:10,patience:2}", "split.num_validation=0"],
            "model.early_stopping needs validation links",
        ),
        (["training=semi", "initial_from=run.py"], "initial_from cannot replace it"),
        (
            ["training=semi", "training.epochs_per_turn=null"],
            "epochs_per_turn must be a whole",
        ),
        (
            ["em=dual", "em.two_way.features=[looks]"],
            "features must be a list of some of similarity, noisy_or",
        ),
        (
            ["em=dual", "rule=avoid_conflict"],
            "needs rule=paris, got rule=avoid_conflict",
        ),
        (
            ["data=files", "data.links=run.py"],
            "data.source must name a file: data=files data.s",
        ),
        (["data=files", "data.source=no.nt"], "data.source: there is no file no.nt"),
        (
            ["data=files", "data.source=https://x.org/sparql"],
            "data.source must be a file. Download https://x.org/sparql first",
        ),
        (
            ["data=files", "data.source=conf"],
            "data.source must be a file, but conf is a folder",
        ),
        (
            ["initial_from=no.safetensors"],
            "initial_from: there is no file no.safetensors",
        ),
        (
            ["model=lightea,rrea", "model.encoder.dim=8,x"],
            "dim must be a whole number from 1 to 16,384 .*, got x",
        ),
        (
            ["model=alinet", "model.encoder.dims=3"],
            r"dims must be a list of whole numbers .*\(such as .*\), got 3",
        ),
        (
            ["method=paris", "protocol=released"],
            "method=paris uses only training links. Remove protocol=released.",
        ),
        (
            ["protocol._target_=emea.data.protocol.Released"],
            "protocol=strict must be emea.data.protocol",
        ),
        (
            ["rule=avoid_conflict", "rule.num_neighbours=5,0"],
            "num_neighbours must be a whole",
        ),
        (
            ["export.target_precision=0.9", "export.threshold=0.5"],
            "Remove export.threshold",
        ),
    ],
)
def test_bad_sweeps_and_combinations_are_refused(
    arguments: list[str], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        check_overrides(["-m", *quote_numeric_choices(arguments)])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["data=zh,fr"], "data=zh,fr"),
        (["seed=1", "ratio=0.01,0.05", "em=dual"], "ratio=0.01,0.05"),
        (["seed=range(3)"], r"seed=range\(3\)"),
    ],
)
def test_several_values_need_the_sweep_flag(arguments: list[str], named: str) -> None:
    typed = quote_numeric_choices(arguments)
    with pytest.raises(
        ConfigError, match=f"^{named} has several values. Add the flag -m"
    ):
        check_overrides(typed)
    check_overrides(["-m", *typed])
    check_overrides(["hydra.mode=MULTIRUN", *typed])


def test_the_features_that_may_be_named_are_the_models() -> None:
    assert (
        set(ALL_FEATURES)
        == set(PRIORS) - {UNMATCHED, COMPETITION}
        == set(ALL_FEATURES) & set(MEANINGS)
    )
    assert tuple(composed(["em=dual"]).em.two_way.features) == FEATURES
    assert tuple(composed(["em=one_to_one"]).em.two_way.features) == ALL_FEATURES


def test_the_sweep_flag_may_stand_anywhere() -> None:
    assert sweep_flag_first(["data=zh", "-m", "seed=0,1"]) == [
        "-m",
        "data=zh",
        "seed=0,1",
    ]


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        ("sed=3", r"There is no key sed \(nearest: .*seed"),
        ("em.iteratons=5", r"There is no key em.iteratons \(nearest: em.iterations"),
        ("data=zhh", r"data has no option zhh \(nearest: zh"),
        (
            "ratio=0.07",
            r"ratio has no option 0.07 .*any other share between 0 and 1: ratio.value=0.07",
        ),
        ("ratio.value=0", "ratio.value must be a number above 0 and below 1"),
        ("rule=none", "em=paper needs a rule"),
        ("+foo=1", "There is no key foo"),
        ("tracking=null", "tracking has no option null; it has mlflow, none"),
        ("~training", "training cannot be removed or null"),
        ("lightea", "'lightea' is not a setting: settings have the form key=value"),
        (
            "trust=agree",
            r"trust must be a list of names \(such as \[my_module\]\), got agree",
        ),
        ("model.encoder.dims=3", r"nearest: model.encoder.dim"),
        (
            "export.formats=nt",
            r"export.formats must be a list of some .* \(such as \[tsv\]\), got",
        ),
        (
            "model.optimizer._target_=os.system",
            "names os.system, which is neither a class of emea",
        ),
        (
            "model.optimizer._target_=emea.Earlier",
            "another version of emea wrote that run",
        ),
        ("--config-dir=nowhere", "nowhere is not a folder"),
        ("a=b=c=", "There is no key a|The command line cannot be read"),
        ("data={", "The command line cannot be read"),
        (f"seed={'9' * 5000}", "The command line cannot be read: Exceeds the limit"),
        (
            f"seed={'[' * 500}{']' * 500}",
            "recursion depth exceeded|seed must be a whole number",
        ),
        (f"study={'x' * MOST_CHARACTERS}", r"^study=x+\.\.\. is too long"),
        ("=1", "'=1' is not a setting: settings have the form key=value"),
        ("seed=${nope}", "seed: Interpolation key 'nope' not found"),
        ("seed=${oc.env:NO_SUCH_VARIABLE}", "seed: .*'NO_SUCH_VARIABLE' not found"),
        ("seed=range(0,1,0)", r"seed=range\(0,1,0\) cannot be read"),
        ("seed=range(0,nan)", "cannot be read|must have 1 to 1,000 values"),
        ("seed=shuffle(range(0,1000000000000))", "must have 1 to 1,000 values"),
        ("~em.name", "em.name"),
    ],
)
def test_bad_command_lines_are_refused_in_a_sentence(
    argument: str, sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence) as caught:
        check_overrides(quote_numeric_choices([argument]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "overrides",
    [
        [
            "seed=3",
            "ratio='0.2'",
            "em=dual",
            "em.two_way.features=[similarity]",
            "~em.ridge",
        ],
        ["variant=dual", "em.iterations=2", "+model.encoder.extra=3", "study='x=y'"],
        ["data=oaei_persons1", "literals=none", "model=lightea", "rule=avoid_conflict"],
        [
            "experiment=smoke/table1",
            "++training.epochs_per_turn=1",
            "seed=${split_seed}",
        ],
    ],
)
def test_what_tests_compose_quickly_is_what_hydra_composes(
    overrides: list[str],
) -> None:
    composition.register_schema()
    with hydra.initialize_config_dir(str(composition.CONF), version_base="1.3"):
        slow = hydra.compose("config", overrides)
    assert composition.compose is not hydra.compose
    quick = composition.composed(overrides)
    assert OmegaConf.to_yaml(quick) == OmegaConf.to_yaml(slow)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["method=paris", "em=dual"], "method=paris does not use em"),
        (["method=paris", "em.iterations=3"], "method=paris does not use em"),
        (["method=prase", "training.turns=3"], "method=prase does not use training"),
        (["em=none", "rule=paris"], "em=none with em.iterations=0 does not reason"),
        (
            ["em.iterations=0", "rule=avoid_conflict"],
            "em=paper with em.iterations=0 does not",
        ),
    ],
)
def test_a_group_that_the_method_does_not_use_is_refused(
    arguments: list[str], reason: str
) -> None:
    key = arguments[-1].lstrip("+").partition("=")[0]
    with pytest.raises(
        ConfigError, match=rf"^{key} has no effect here: {reason}.*Leave {key} out"
    ):
        check_overrides(arguments)
    check_overrides(arguments, defaults=arguments[-1:])
    check_overrides(["-m", *arguments, "method=emea,paris", "seed=0,1"])


@pytest.mark.parametrize(
    "arguments",
    [
        ["method=paris", "model=rrea", "seed=1"],
        ["em=dual", "~em.ridge"],
        [
            "method=prase",
            "model.initial_epochs=5",
            "search=kmeans",
            "search.num_probes=3",
        ],
    ],
)
def test_a_group_that_the_method_uses_passes(arguments: list[str]) -> None:
    check_overrides(arguments)


def test_flags() -> None:
    check_flags(
        ["-m", "--multirun", "--config-dir=x", "--cfg", "job", "seed=-1", "-cd", "y"]
    )
    with pytest.raises(
        ConfigError, match=r"^Unknown flag --multrun\. Did you mean --multirun\?$"
    ):
        check_flags(["--multrun"])
    with pytest.raises(ConfigError, match=r"^Unknown flag --zzz\. emea run --help"):
        check_flags(["--zzz=3"])


@pytest.mark.parametrize(
    ("typed", "sorted_"),
    [
        ("seed=1 --cfg job em=none", "--cfg job seed=1 em=none searched"),
        ("-m seed=1,2", "-m seed=1,2 searched"),
        ("--cfg=job seed=1 -p em seed=1", "--cfg=job -p em seed=1 seed=1 searched"),
        ("", "searched"),
    ],
)
def test_flags_may_be_anywhere(typed: str, sorted_: str) -> None:
    assert settings_last(typed.split(), ["searched"]) == sorted_.split()


def test_a_sweep_is_spelled_out_and_what_was_typed_stays() -> None:
    arguments = with_sweep(
        ["-m", "experiment=table2", "ratio='0.05'", "em.iterations=2"]
    )
    assert arguments[:4] == [
        "-m",
        "experiment=table2",
        "ratio='0.05'",
        "em.iterations=2",
    ]
    assert "protocol=released,strict" in arguments
    assert sum(argument.startswith("ratio=") for argument in arguments) == 1
    assert with_sweep(["experiment=null"]) == ["experiment=null"]
    with pytest.raises(ConfigError, match="experiment=table1 is a sweep"):
        with_sweep(["experiment=table1"])
    with pytest.raises(ConfigError, match="one command per experiment"):
        with_sweep(["-m", "experiment=table1,table2"])


def test_jobs_are_all_combinations() -> None:
    found = jobs("table2", ["data=zh,fr", "ratio='0.05'"])
    splits = len(sweep_params("table2")["split_seed"].split(","))
    assert len(found) == 2 * 2 * splits  # pairs, protocols
    assert len({tuple(job) for job in found}) == len(found)


def test_a_job_is_what_the_sweep_would_run() -> None:
    job = jobs("figure7", ["ratio='0.1'", "split_seed=2"])[-1]
    config = composed(job)
    assert (config.ratio.value, config.split_seed, config.study) == (0.1, 2, "figure7")
    assert config.rule.num_neighbours == 20


def test_a_dictionary_changes_what_it_names_alone() -> None:
    found = jobs(
        "dual", ["data=zh", "ratio='0.3'", "split_seed=0", "em.two_way={},{sweeps:1}"]
    )
    usual, changed = (composed(job).em.two_way for job in found)
    assert (usual.sweeps, changed.sweeps) == (2, 1)
    assert changed.both_directions == usual.both_directions


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["data=zh", "em=dual", "em.iterations=2", "ratio.value=0.07"],
        ["ensemble=independent", "em=one_to_one", "ensemble.folds=true", "seed=3"],
        ["+model.encoder.extra={one:[1,2]}", "~model.restart"],
    ],
)
def test_the_checked_config_is_the_composed_one(arguments: list[str]) -> None:
    for _ in range(
        2
    ):  # the second time from the kept choices, which the first did not change
        checked, expected = check_overrides(arguments), composed(arguments)
        assert OmegaConf.to_yaml(checked) == OmegaConf.to_yaml(expected)
        assert checked._metadata.flags == expected._metadata.flags


def test_choices_are_composed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    compose = composition.compose

    def counted(name: str, overrides: list[str], **options: object) -> object:
        seen.append(overrides)
        return compose(name, overrides, **options)

    composition._of_package_options.cache_clear()
    monkeypatch.setattr(composition, "compose", counted)
    for iterations in (1, 2, 3):
        found = check_overrides(["em=dual", f"em.iterations={iterations}"])
        assert found.em.iterations == iterations
    assert seen == [["em=dual"]]
