"""Runs a single job through Hydra: composes the config once and checks it first."""

from collections.abc import Callable, Sequence
from typing import Any

from hydra import version
from hydra._internal.hydra import Hydra
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.global_hydra import GlobalHydra
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from emea.config.command_line import (
    CONFIG_DIR_FLAGS,
    SWEEP_FLAGS,
    check_command,
    check_composed,
    check_settings,
    without_config_dirs,
)
from emea.config.composition import CONF, error_text
from emea.errors import ConfigError

JOB = "run"
"""Hydra's name for the job; the log file is named after it."""


def is_single(arguments: Sequence[str]) -> bool:
    """Return whether a command line is a run that needs no further features of Hydra.

    Sweeps and Hydra's other flags go through ``hydra.main``.
    """
    flags = [one.partition("=")[0] for one in arguments if one.startswith("-")]
    wants_mode = any(one.lstrip("+").startswith("hydra.mode=") for one in arguments)
    return not wants_mode and set(flags) <= set(CONFIG_DIR_FLAGS) - set(SWEEP_FLAGS)


class CheckedHydra(Hydra):
    """Extends Hydra by a check of the composed config before the run starts."""

    def compose_config(
        self,
        config_name: str | None,
        overrides: list[str],
        run_mode: RunMode,
        with_log_configuration: bool = False,
        from_shell: bool = True,
        validate_sweep_overrides: bool = True,
    ) -> DictConfig:
        """Compose the config and check it.

        Raises:
            ConfigError: If the config cannot be composed, or cannot run.
        """
        own = [one for one in overrides if not one.lstrip("+~").startswith("hydra")]
        try:
            config = super().compose_config(
                config_name,
                overrides,
                run_mode,
                with_log_configuration,
                from_shell,
                validate_sweep_overrides,
            )
        except (HydraException, OmegaConfBaseException, ValueError) as error:
            GlobalHydra.instance().clear()  # compose once more, to get a better explanation
            check_settings(own)
            raise ConfigError(error_text(error)) from error
        keys = [str(key) for key in config if key != "hydra"]
        check_composed(OmegaConf.masked_copy(config, keys), own)
        return config


def run_once(arguments: Sequence[str], task: Callable[[DictConfig], Any]) -> None:
    """Compose, check and run one configuration in Hydra's run folder.

    Args:
        arguments: The command line, for which `is_single` holds.
        task: A function that is called with the config without Hydra's own part.

    Raises:
        ConfigError: If the configuration cannot run; no folder was created.
    """
    version.setbase("1.3")
    overrides, folders = without_config_dirs(arguments)
    search_path = create_config_search_path(str(CONF))
    for folder in folders:
        search_path.prepend(
            provider="command-line",
            path=f"file://{folder.resolve()}",
            anchor=SearchPathQuery(provider="schema"),
        )
    check_command(arguments)
    hydra = CheckedHydra.create_main_hydra2(JOB, search_path)
    try:
        hydra.run("config", task, overrides)
    finally:
        GlobalHydra.instance().clear()
