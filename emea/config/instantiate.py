"""From config nodes to objects: dispatch by ``_target_`` alone."""

from collections.abc import Callable
from functools import partial
from typing import Any

from hydra.errors import HydraException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from emea.config.files import sentence
from emea.config.trusted_targets import check_made
from emea.data.graph_pair import GraphPair
from emea.errors import ConfigError


def maker(node: DictConfig, keep_name: bool = False) -> Callable[..., Any]:
    """What a config node makes, waiting for the arguments only the run knows.

    Args:
        node: with a ``_target_``.
        keep_name: pass the option's name on as an argument, too.
    """
    values = _settings(node)
    name = {"name": values["name"]} if keep_name and "name" in values else {}
    try:
        # as a partial, so that errors of the class arrive as they are, not wrapped by Hydra
        made = instantiate({**_nameless(values), **name, "_partial_": True, "_convert_": "all"})
    except HydraException as error:
        raise ConfigError(f"{values['_target_']} cannot be used: {_reason(error)}") from error
    return partial(make, made.func, **made.keywords)


def _reason(error: BaseException) -> str:
    """What went wrong first: Hydra only says that it could not find something."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, ModuleNotFoundError):
        return f"there is no module {error.name} (does PYTHONPATH hold its folder?)"
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    return str(error)


def _settings(node: DictConfig) -> dict[str, Any]:
    """What a node holds; it may come from a config that others wrote."""
    if not isinstance(node, DictConfig):
        raise ConfigError(f"a part of the configuration is no group of settings: {node}")
    try:
        values: Any = OmegaConf.to_container(node, resolve=True)
    except OmegaConfBaseException as error:  # it refers to what is not there
        raise ConfigError(sentence(error)) from error
    if "_target_" not in values:
        raise ConfigError(f"a part of the configuration names no class (_target_): {values}")
    if not all(isinstance(key, str) for key in values):  # YAML also has numbers as keys
        raise ConfigError(f"{values['_target_']} has a setting whose name is no text: {values}")
    root = node._get_root()
    check_made(values, root.get("trust") or () if isinstance(root, DictConfig) else ())
    return dict(values)


def _nameless(node: Any) -> Any:
    """The node without the names of options, its own and those of options composed into it."""
    if not isinstance(node, dict):
        return node
    kept = {key: _nameless(value) for key, value in node.items()}
    if "_target_" in node:
        kept.pop("name", None)
    return kept


def load_pair(config: DictConfig) -> GraphPair:
    """Read the pair of graphs that the config names; this needs no torch.

    Raises:
        ConfigError: the config's data cannot be made, or is not a pair of graphs.
        DataError: a file cannot be used.
    """
    pair = maker(config.data, keep_name=True)()
    if not isinstance(pair, GraphPair):
        raise ConfigError(
            f"{config.data._target_} does not give a pair of graphs. Choose another data option."
        )
    return pair


def make(target: Callable[..., Any], /, *arguments: Any, **settings: Any) -> Any:
    """Call a class or function; settings it does not take are the user's to mend."""
    try:
        return target(*arguments, **settings)
    except (TypeError, ValueError) as error:
        name = getattr(target, "__name__", str(target))
        raise ConfigError(f"{name} cannot be made from its settings: {error}") from error
