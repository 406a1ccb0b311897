"""From config nodes to objects: dispatch by ``_target_`` alone."""

from collections.abc import Callable
from functools import partial
from typing import Any

from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf

from emea.errors import ConfigError


def maker(node: DictConfig, keep_name: bool = False) -> Callable[..., Any]:
    """What a config node makes, waiting for the arguments only the run knows.

    Args:
        node: with a ``_target_``.
        keep_name: pass the option's name on as an argument, too.
    """
    values: Any = OmegaConf.to_container(node, resolve=True)
    if not keep_name:
        values.pop("name", None)
    # as a partial, so that errors of the class arrive as they are, not wrapped by Hydra
    made = instantiate({**values, "_partial_": True})
    return partial(make, made.func, **made.keywords)


def make(target: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Call a class or function; settings it does not take are the user's to mend."""
    try:
        return target(*arguments, **settings)
    except (TypeError, ValueError) as error:
        name = getattr(target, "__name__", str(target))
        raise ConfigError(f"{name} cannot be made from its settings: {error}") from error
