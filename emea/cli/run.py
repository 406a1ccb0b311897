"""``emea run [-m] key=value ...``: one run or a sweep; ``--help`` lists all options."""

import logging
import math
import os
import sys
import textwrap
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from traceback import walk_tb

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig

from emea.config.checks import check_config
from emea.config.command_line import (
    SWEEP_FLAGS,
    check_flags,
    check_overrides,
    sweep_flag_first,
    typed_trust,
    without_config_dirs,
)
from emea.config.composition import (
    CONF,
    error_text,
    option_names,
    quote_numeric_choices,
    register_schema,
    search_also,
    search_path,
)
from emea.config.paths import check_modules, check_writable
from emea.config.settings.groups import GROUPS
from emea.errors import ConfigError, DataError, UserError
from emea.record.pair_file import load_pair
from emea.record.run_folder import LOG_FILE
from emea.record.run_header import Launch
from emea.record.run_record import is_finished
from emea.run.sweep import forget_outcome, launch_of, write_outcome
from emea.runtime.console import logged

logger = logging.getLogger(__name__)

HELP = ("-h", "--help")
SWEEP_ADVICE = (
    "The sweep was interrupted. To run the remaining jobs, repeat the command with "
    "skip_recorded=true."
)
FOLDERS = ("hydra.run.dir", "hydra.sweep.dir")
PRINT_ONLY = ("--hydra-help", "--version", "-c", "--cfg", "--info", "-sc")
"""Flags with which Hydra only prints; some are written ``--flag=value``."""


USAGE = """emea: entity alignment guided by compatibility (Liu et al., EMNLP 2022)

usage: emea run [key=value ...]       one run
       emea run -m [key=a,b,c ...]    a sweep over all combinations
       emea run resume=FOLDER         resume an interrupted run

`python run.py` is the same as `emea run`."""

EXAMPLES = """Examples:

  emea run
  emea run data=dbp15k_zh ratio=0.05
  emea run -m data=dbp15k_zh,fr,ja ratio=0.01,0.05
  emea run data=openea data.folder=my_pair split=official
  emea run data=files data.source=a.nt.gz data.target=b.ttl data.links=seeds.tsv
  emea run data=zh em=none rule=none seed=1 split_seed=1
  emea run -m experiment=table1 data=zh

Set any value of a group with group.key=value: em.num_candidates=20 model.encoder.dim=200.
`emea run --cfg job` prints the whole configuration, `emea data NAME` describes a data set, and
`emea predict RUN` exports the alignment of a finished run again. All settings are in
docs/configuration.md."""

WIDTH = 98


def main(arguments: Sequence[str]) -> int:
    """Check the command line, then start or resume a run, or start a sweep."""
    if any(argument in HELP for argument in arguments):
        print(help_text(), flush=True)
        return 0
    register_schema()
    try:
        _start(arguments)
    except KeyboardInterrupt:
        if any(argument in SWEEP_FLAGS for argument in sys.argv[1:]):
            print(SWEEP_ADVICE, file=sys.stderr)
        raise
    return 0


def help_text() -> str:
    """Return the groups with their options."""
    lines = ["Groups (group=option):", ""]
    for name, group in GROUPS.items():
        lines.append(f"  {name:<10}  {group.help}")
        options = ", ".join(one for one in option_names(name) if "/" not in one)
        indent = " " * 14
        lines += textwrap.wrap(options, WIDTH, initial_indent=indent, subsequent_indent=indent)
    return "\n".join([USAGE, "", *lines, "", EXAMPLES])


def _start(typed: Sequence[str]) -> None:
    """Start or resume what the arguments ask for; Hydra reads them from ``sys.argv``."""
    check_flags(typed)
    sys.argv[1:] = sweep_flag_first(quote_numeric_choices(typed))
    resume = resumed_folder(sys.argv[1:])
    if resume is not None:
        resume_run(*resume)
        return
    others, folders = without_config_dirs(sys.argv[1:])
    search_also(folders, typed_trust(others))
    if not any(argument.split("=")[0] in PRINT_ONLY for argument in sys.argv[1:]):
        check_overrides(sys.argv[1:])
        for key, _, folder in (argument.lstrip("+").partition("=") for argument in sys.argv[1:]):
            if key in FOLDERS and "${" not in folder:
                check_writable(Path(folder.strip("'\"")))
    sys.argv[1:] = [*others, *search_path()]
    _run_hydra()


def _run_hydra() -> None:
    """Compose and start the jobs. Errors outside of a job, such as for a folder, become sentences.

    Raises:
        ConfigError: If Hydra cannot compose its own settings, such as a launcher.
        DataError: If Hydra cannot create the folder of the run or sweep.
    """
    os.environ["HYDRA_FULL_ERROR"] = "1"  # errors are raised here, not printed with a traceback
    try:
        hydra.main(str(CONF), "config", version_base="1.3")(job)()
    except HydraException as error:
        raise ConfigError(error_text(error)) from error
    except OSError as error:
        if any(frame.f_code is job.__code__ for frame, _ in walk_tb(error.__traceback__)):
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
    if launch.sweep is not None:  # before a sweep, not every combination of its values is checked
        check_config(config)
    started = time.perf_counter()
    pair = load_pair(config)
    launch = replace(launch, read_s=time.perf_counter() - started)
    from emea.record.run_folder import sweep_objective
    from emea.record.sync import AlreadyRecordedError
    from emea.run.job import run_job
    from emea.run.result_table import print_results

    try:
        result = run_job(config, folder, launch, pair)
    except AlreadyRecordedError as recorded:
        logger.info("%s", recorded)
        write_outcome(folder, recorded=recorded.place)
        return recorded.objective
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
