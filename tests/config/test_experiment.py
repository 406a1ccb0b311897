import pytest

from emea.config.command_line import sweep_params, with_sweep
from emea.config.composition import composed
from emea.errors import ConfigError
from experiments.batch import jobs


def test_a_sweep_is_spelled_out_and_what_was_typed_stays() -> None:
    arguments = with_sweep(["-m", "experiment=table2", "ratio='0.05'", "em.iterations=2"])
    assert arguments[:4] == ["-m", "experiment=table2", "ratio='0.05'", "em.iterations=2"]
    assert "protocol=released,strict" in arguments
    assert sum(argument.startswith("ratio=") for argument in arguments) == 1


def test_without_an_experiment_nothing_is_added() -> None:
    assert with_sweep(["-m", "data=zh"]) == ["-m", "data=zh"]
    assert with_sweep(["experiment=null"]) == ["experiment=null"]


def test_an_experiment_is_a_sweep() -> None:
    with pytest.raises(ConfigError, match="experiment=table1 is a sweep"):
        with_sweep(["experiment=table1"])


def test_one_experiment_a_command() -> None:
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
    found = jobs("dual", ["data=zh", "ratio='0.3'", "split_seed=0", "em.two_way={},{sweeps:1}"])
    usual, changed = (composed(job).em.two_way for job in found)
    assert (usual.sweeps, changed.sweeps) == (2, 1)
    assert changed.both_directions == usual.both_directions
