"""Entry point: ``python run.py [-m] key=value ...``; ``--help`` lists what can be chosen."""

import logging
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

try:
    import hydra
except ModuleNotFoundError as error:
    raise SystemExit(
        f"error: this Python has no {error.name}: after make run, type . .venv/bin/activate, "
        "or install the project with pip install -e ."
    ) from None
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig

from emea.errors import UserError
from emea.pipeline.named_files import check_run_folder
from emea.pipeline.overrides import (
    check_overrides,
    quote_numeric_choices,
    sweep_flag_first,
    unused_overrides,
)
from emea.pipeline.schema import register_schema

logger = logging.getLogger(__name__)

ASKS_FOR_NO_RUN = ("-h", "--help", "--hydra-help", "--version", "-c", "--cfg", "--info", "-sc")
"""Flags after which Hydra only prints; ``--flag=value`` counts, too."""


@hydra.main(config_path="conf", config_name="config", version_base="1.3")
def job(config: DictConfig) -> float:
    """Run one configuration; the value, of validation links, is what a sweeper may maximise."""
    # torch and Lightning load here, so that --help and a mistyped key answer at once
    from emea.pipeline.already_recorded import AlreadyRecordedError
    from emea.pipeline.hydra_files import clean_hydra_files
    from emea.pipeline.job import run_job
    from emea.pipeline.result_table import print_results
    from emea.pipeline.run_header import sweep_name
    from emea.pipeline.sweep_objective import sweep_objective
    from emea.pipeline.sweep_summary import forget_outcome, write_outcome

    hydra_config = HydraConfig.get()
    folder = Path(hydra_config.runtime.output_dir)
    clean_hydra_files(config, hydra_config)
    for who, unused in unused_overrides(config, hydra_config.overrides.task).items():
        logger.warning("%s has no use for %s", who, ", ".join(unused))
    forget_outcome(folder)
    is_sweep = hydra_config.mode == RunMode.MULTIRUN
    sweep = sweep_name(Path(hydra_config.sweep.dir)) if is_sweep else None
    try:
        metrics = run_job(config, folder, sweep)
    except AlreadyRecordedError as recorded:
        logger.info("%s", recorded)
        write_outcome(folder, recorded=recorded.place)
        return recorded.objective
    except Exception as error:
        if isinstance(error, UserError):
            logger.error("%s", error)
        elif is_sweep:
            logger.exception("the job failed")  # into its own log, too
        else:
            raise
        if not is_sweep:
            raise SystemExit(1) from None
        write_outcome(folder, failed=f"{type(error).__name__}: {error}")
        return math.nan  # the sweep's other jobs are none the worse for it
    found = Path(metrics["folder"])
    if found != folder:  # it went on where it was interrupted
        write_outcome(folder, recorded=str(found))
    print_results(metrics, found)
    return sweep_objective(metrics)


def resumed_folder(arguments: Sequence[str]) -> tuple[Path, list[str]] | None:
    """The run that ``resume=FOLDER`` names, and the modules of one's own that it may use.

    It keeps its settings, so nothing else may be typed.
    """
    named = [argument for argument in arguments if argument.startswith("resume=")]
    if not named:
        return None
    others = [argument for argument in arguments if argument not in named]
    if len(named) > 1 or any(not other.startswith("trust=") for other in others):
        raise SystemExit(
            "error: a resumed run keeps its settings: type resume=FOLDER alone, "
            "or with trust=[MODULE] where it uses a module of your own"
        )
    trust = [name for other in others for name in other.partition("=")[2].strip("[]").split(",")]
    return Path(named[0].partition("=")[2]), [name.strip() for name in trust if name.strip()]


def go_on(folder: Path, trust: list[str]) -> None:
    """Finish an interrupted run in its own folder."""
    from emea.pipeline.job import run_job
    from emea.pipeline.result_table import print_results
    from emea.pipeline.resuming import config_to_resume
    from emea.pipeline.run_files import LOG_FILE

    try:
        config = config_to_resume(folder)
        config.skip_recorded = False
        config.trust = trust  # the folder may come from a stranger: what it says does not count
        with logged(folder / LOG_FILE):
            print_results(run_job(config, folder, resumes=True), folder)
    except UserError as error:
        raise SystemExit(f"error: {error}") from None


@contextmanager
def logged(file: Path) -> Iterator[None]:
    """Log to the console and to a file, as Hydra lets a run."""
    line, time = "%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"
    handler = logging.FileHandler(file)
    handler.setFormatter(logging.Formatter(line, time))
    logging.basicConfig(level=logging.INFO, format=line, datefmt=time)
    logging.getLogger().addHandler(handler)
    try:
        yield
    finally:
        logging.getLogger().removeHandler(handler)
        handler.close()


def main() -> None:
    """Prepare the command line, then hand over to Hydra."""
    register_schema()
    sys.argv[1:] = sweep_flag_first(quote_numeric_choices(sys.argv[1:]))
    asked = {argument.split("=")[0] for argument in sys.argv[1:]}
    if not asked.intersection(ASKS_FOR_NO_RUN):
        try:
            if "resume" not in asked:
                check_overrides(sys.argv[1:])
            check_run_folder(sys.argv[1:])
        except UserError as error:
            raise SystemExit(f"error: {error}") from None
    try:
        resume = resumed_folder(sys.argv[1:])
        if resume is None:
            job()
        else:
            go_on(*resume)
    except KeyboardInterrupt:
        from emea.pipeline.interruption import exit_status

        raise SystemExit(exit_status()) from None


if __name__ == "__main__":
    main()
