"""``emea run [-m] key=value ...``: one run or a sweep; ``--help`` lists all options."""

import logging
import math
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from traceback import walk_tb

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from emea.cli.run_help import run_help
from emea.config.checks import check_config
from emea.config.command_line import (
    SWEEP_FLAGS,
    check_flags,
    checked_jobs,
    settings_last,
    sweep_flag_first,
    typed_trust,
    without_config_dirs,
)
from emea.config.composition import (
    CONF,
    error_text,
    quote_numeric_choices,
    register_schema,
    search_also,
    search_path,
)
from emea.config.paths import check_modules, check_writable
from emea.config.run_config import RunConfig
from emea.data.split import Split
from emea.errors import ConfigError, DataError, UserError
from emea.record.pair_file import load_pair
from emea.record.run_folder import LOG_FILE
from emea.record.run_header import Launch
from emea.record.run_record import is_finished
from emea.run.sweep import forget_outcome, launch_of, write_outcome
from emea.runtime.console import logged
from emea.runtime.heartbeat import HEARTBEAT

logger = logging.getLogger(__name__)

HELP = ("-h", "--help")
SWEEP_ADVICE = (
    "The sweep was interrupted. To run the remaining jobs, repeat the command with "
    "skip_recorded=true."
)
HERE = ("basic", "joblib")
"""Launchers whose jobs run on this machine."""

FOLDERS = ("hydra.run.dir", "hydra.sweep.dir")
PRINT_ONLY = ("--hydra-help", "--version", "-c", "--cfg", "--info", "-sc")
"""Flags with which Hydra only prints; some are written ``--flag=value``."""

MODES = {
    **{"--multirun": "sweep", "-m": "sweep", "--run": "run", "-r": "run"},
    **{"--cfg": "config", "-c": "config", "--info": "info", "-i": "info"},
    **{"--shell-completion": "completion", "-sc": "completion"},
}
"""Flags of Hydra that say what it does, of which it accepts one."""


def main(arguments: Sequence[str]) -> int:
    """Check the command line, then start or resume a run, or start a sweep."""
    if any(argument in HELP for argument in arguments):
        print(run_help(arguments), flush=True)
        return 0
    register_schema()
    try:
        _start(arguments)
    except KeyboardInterrupt:
        if any(argument in SWEEP_FLAGS for argument in arguments):
            print(SWEEP_ADVICE, file=sys.stderr)
        raise
    return 0


def _start(typed: Sequence[str]) -> None:
    """Start or resume what the arguments ask for; Hydra reads them from ``sys.argv``."""
    check_flags(typed)
    arguments = sweep_flag_first(quote_numeric_choices(typed))
    resume = resumed_folder(arguments)
    if resume is not None:
        resume_run(*resume)
        return
    check_one_mode(arguments)
    others, folders = without_config_dirs(arguments)
    search_also(folders, typed_trust(others))
    if not any(argument.split("=")[0] in PRINT_ONLY for argument in arguments):
        _check_jobs(arguments)
    sys.argv[1:] = settings_last(others, search_path())
    _run_hydra()


def check_one_mode(arguments: Sequence[str]) -> None:
    """Raise an error for flags that exclude each other, such as ``-m`` and ``--cfg``.

    Raises:
        ConfigError: If there are several of them.
    """
    flags = [argument.partition("=")[0] for argument in arguments]
    given = {MODES[flag]: flag for flag in flags if flag in MODES}
    if len(given) > 1:
        raise ConfigError(
            f"{' and '.join(given.values())} cannot be combined. Leave one of them out."
        )


def _check_jobs(arguments: Sequence[str]) -> None:
    """Check the configurations of a run or sweep, and that their folders can be written."""
    checked = checked_jobs(arguments)
    is_sweep = any(argument in SWEEP_FLAGS for argument in arguments)
    if is_sweep and runs_here(arguments):
        check_splits(checked)
    for argument in arguments:
        key, _, folder = argument.lstrip("+").partition("=")
        if key in FOLDERS and "${" not in folder:
            check_writable(Path(folder.strip("'\"")))


def runs_here(arguments: Sequence[str]) -> bool:
    """Return whether the jobs of a sweep run on this machine, so that it has their data."""
    key = "hydra/launcher="
    launchers = [one.removeprefix(key) for one in arguments if one.startswith(key)]
    return all(one in HERE for one in launchers)


def check_splits(configs: Sequence[DictConfig]) -> None:
    """Read each pair of a sweep and split its links, before the first job.

    A setting that the data cannot have would otherwise fail job by job, perhaps after hours.

    Raises:
        UserError: If a pair cannot be read, or cannot be split as configured.
    """
    splits: dict[str, dict[str, DictConfig]] = {}
    for config in configs:
        if config.data.get("division") is not None:
            continue  # a part of a divided pair was checked when the pair was divided
        data = OmegaConf.to_yaml(config.data, resolve=True) + str(config.literals.name)
        split = OmegaConf.to_yaml(config.split, resolve=True)
        splits.setdefault(data, {})[split] = config
    for of_pair in splits.values():
        pair = None
        for config in of_pair.values():
            pair = load_pair(config) if pair is None else pair
            RunConfig.of(config).option("split").make(Split, pair)


def _run_hydra() -> None:
    """Compose and start the jobs. Errors outside of a job, such as for a folder, become sentences.

    Raises:
        ConfigError: If Hydra cannot compose its own settings, such as a launcher.
        DataError: If Hydra cannot create the folder of the run or sweep.
    """
    os.environ["HYDRA_FULL_ERROR"] = (
        "1"  # errors are raised here, not printed with a traceback
    )
    try:
        hydra.main(str(CONF), "config", version_base="1.3")(job)()
    except HydraException as error:
        raise ConfigError(error_text(error)) from error
    except OSError as error:
        if any(
            frame.f_code is job.__code__ for frame, _ in walk_tb(error.__traceback__)
        ):
            raise
        raise DataError(
            f"The run folder cannot be created: {error}. Choose another with "
            f"{' or, in a sweep, '.join(f'{key}=FOLDER' for key in FOLDERS)}."
        ) from error


def job(config: DictConfig) -> float:
    """Run one configuration and return its score on validation links, for sweepers that search."""
    hydra_config = HydraConfig.get()
    folder = Path(hydra_config.runtime.output_dir)
    forget_outcome(folder)
    is_sweep = hydra_config.mode == RunMode.MULTIRUN
    try:
        return _run(config, folder, launch_of(hydra_config))
    except Exception as error:
        if isinstance(error, UserError):
            logger.error("%s", error)
        elif is_sweep:
            logger.exception("The job failed")  # also write it to the job's log
        else:
            raise
        if not is_sweep:
            raise SystemExit(1) from None
        write_outcome(folder, failed=f"{type(error).__name__}: {error}")
        return math.nan  # the sweep's other jobs are not affected


def _run(config: DictConfig, folder: Path, launch: Launch) -> float:
    """Read the data, then run; errors in a file are reported before torch is imported."""
    # the command line was checked, but before a sweep not every combination of its values
    if launch.sweep is not None:
        check_config(config)
    started = time.perf_counter()
    with HEARTBEAT.beating(), HEARTBEAT.describing(lambda: "reading the data"):
        pair = load_pair(config)
    seconds = time.perf_counter() - started
    launch = replace(launch, read_s=seconds, is_checked=True)
    from emea.record.earlier_runs import AlreadyRecordedError
    from emea.record.run_folder import sweep_objective
    from emea.run.job import run_job
    from emea.run.result_table import print_results

    try:
        result = run_job(config, folder, launch, pair=pair)
    except AlreadyRecordedError as recorded:
        logger.info("%s", recorded)
        write_outcome(folder, recorded=recorded.place, metrics=recorded.metrics)
        return recorded.objective
    if result.folder != folder:  # an interrupted run was continued in its own folder
        write_outcome(folder, recorded=str(result.folder), metrics=result.metrics)
    print_results(result)
    return sweep_objective(result.metrics)


def resumed_folder(arguments: Sequence[str]) -> tuple[Path, list[str]] | None:
    """Return the folder of ``resume=FOLDER`` and the modules that the user trusts.

    A resumed run keeps its settings, so other settings are refused.

    Raises:
        UserError: If other settings are given.
    """
    named = [argument for argument in arguments if argument.startswith("resume=")]
    if not named:
        return None
    others = [argument for argument in arguments if argument not in named]
    if len(named) > 1 or any(not other.startswith("trust=") for other in others):
        raise UserError(
            "A resumed run keeps its settings. Give only resume=FOLDER, "
            "and trust=[MODULE] if it uses a module of your own."
        )
    return Path(named[0].partition("=")[2]), typed_trust(others)


def resume_run(folder: Path, trust: list[str]) -> None:
    """Finish an interrupted run in its own folder.

    Raises:
        ConfigError: If a module is missing.
        DataError: If the folder has no run, or the run is finished.
    """
    check_modules(trust)
    if is_finished(folder):
        raise DataError(f"{folder} is finished. There is nothing to resume.")
    from emea.run.job import run_job
    from emea.run.result_table import print_results
    from emea.run.resuming import config_to_resume

    config = config_to_resume(folder)
    config.skip_recorded = False
    config.trust = trust  # the list in an untrusted folder does not count
    with logged(folder / LOG_FILE):
        print_results(run_job(config, folder, resumes=True))
