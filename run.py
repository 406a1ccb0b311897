"""Entry point: ``python run.py [-m] key=value ...``; ``--help`` lists what can be chosen."""

import logging
import sys
from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig

from emea.errors import UserError
from emea.pipeline.overrides import check_overrides, quote_numeric_choices
from emea.pipeline.schema import register_schema

logger = logging.getLogger(__name__)


@hydra.main(config_path="conf", config_name="config", version_base="1.3")
def job(config: DictConfig) -> float:
    """Run one configuration; the value is what a sweeper may maximise."""
    # torch and Lightning load here, so that --help and a mistyped key answer at once
    from emea.pipeline.job import run_job
    from emea.pipeline.result_table import print_results

    folder = Path(HydraConfig.get().runtime.output_dir)
    try:
        metrics = run_job(config, folder)
    except UserError as error:
        logger.error("%s", error)
        raise SystemExit(1) from None
    print_results(metrics, folder)
    hit: float = metrics["final"]["hit@1"]
    return hit


def main() -> None:
    """Prepare the command line, then hand over to Hydra."""
    register_schema()
    sys.argv[1:] = quote_numeric_choices(sys.argv[1:])
    wants_run = not any(flag in sys.argv for flag in ("--help", "-h", "--hydra-help", "--version"))
    if wants_run:
        try:
            check_overrides(sys.argv[1:])
        except UserError as error:
            raise SystemExit(f"error: {error}") from None
    job()


if __name__ == "__main__":
    main()
