"""Creates objects from config nodes, whose ``_target_`` names the class."""

from collections.abc import Callable
from functools import partial
from typing import Any

from hydra.errors import HydraException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from emea.config.composition import error_text
from emea.config.trusted_targets import check_made
from emea.errors import ConfigError


def factory(node: DictConfig, keep_name: bool = False) -> Callable[..., Any]:
    """Return a factory for the object of a config node; the caller adds the arguments of the run.

    Args:
        node: A config node with a ``_target_``.
        keep_name: Whether to pass the name of the option as an argument, too.
    """
    values = _settings(node)
    name = {"name": values["name"]} if keep_name and "name" in values else {}
    try:
        # as a partial, so that Hydra does not wrap errors of the class
        made = instantiate({**_nameless(values), **name, "_partial_": True, "_convert_": "all"})
    except HydraException as error:
        raise ConfigError(f"{values['_target_']} cannot be used: {_reason(error)}") from error
    return partial(make, made.func, **made.keywords)


def _reason(error: BaseException) -> str:
    """Return the first cause of an error, which is more specific than Hydra's own message."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, ModuleNotFoundError):
        return f"there is no module {error.name} (PYTHONPATH must contain its folder)"
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    return str(error)


def _settings(node: DictConfig) -> dict[str, Any]:
    """Return the values of a node, which may come from an untrusted config."""
    if not isinstance(node, DictConfig):
        raise ConfigError(f"A part of the configuration is not a group of settings: {node}")
    try:
        values: Any = OmegaConf.to_container(node, resolve=True)
    except OmegaConfBaseException as error:  # an interpolation refers to a missing key
        raise ConfigError(error_text(error)) from error
    if "_target_" not in values:
        raise ConfigError(f"A part of the configuration names no class (_target_): {values}")
    if not all(isinstance(key, str) for key in values):  # keys in YAML can be numbers
        raise ConfigError(f"{values['_target_']} has a setting whose name is not text: {values}")
    root = node._get_root()
    check_made(values, root.get("trust") or () if isinstance(root, DictConfig) else ())
    return dict(values)


def _nameless(node: Any) -> Any:
    """Return the node without option names, its own and those of nested options."""
    if not isinstance(node, dict):
        return node
    kept = {key: _nameless(value) for key, value in node.items()}
    if "_target_" in node:
        kept.pop("name", None)
    return kept


def make(target: Callable[..., Any], /, *arguments: Any, **settings: Any) -> Any:
    """Call a class or function, and raise a `ConfigError` if its settings are wrong."""
    try:
        return target(*arguments, **settings)
    except (TypeError, ValueError) as error:
        name = getattr(target, "__name__", str(target))
        raise ConfigError(f"{name} does not accept its settings: {error}") from error
