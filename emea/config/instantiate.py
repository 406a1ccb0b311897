"""Creates objects from config nodes whose ``_target_`` names a class, if the class is trusted."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from hydra.errors import HydraException
from hydra.utils import instantiate
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from emea.config.composition import CONF, error_text, group_names
from emea.errors import ConfigError


@dataclass(frozen=True, eq=False)
class Option:
    """A part of the configuration: its settings, and usually the class that they are for.

    Call it to make the object; the caller adds the arguments of the run.

    Args:
        name: The name of the option; empty if it has none.
        values: Its settings, resolved.
        trust: Modules of the user whose classes it may name.
        keep_name: Whether the class gets the name of the option, too.
    """

    name: str
    values: Mapping[str, Any]
    trust: tuple[str, ...] = ()
    keep_name: bool = False

    @classmethod
    def of(
        cls, values: Any, trust: Sequence[str] = (), keep_name: bool = False
    ) -> "Option":
        """Return the option with these values, which may come from an untrusted config."""
        if not isinstance(values, dict):
            raise ConfigError(
                f"A part of the configuration is not a group of settings: {values}"
            )
        return cls(str(values.get("name", "")), values, tuple(trust), keep_name)

    @property
    def target(self) -> str | None:
        """The class or function that the option names; ``None`` if it names none."""
        return self.values.get("_target_")

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        """Return the object of the class, made with its settings and further arguments."""
        return self.factory()(*arguments, **settings)

    def make(self, kind: type, *arguments: Any, **settings: Any) -> Any:
        """Return what the class or function makes, which must be of this kind."""
        found = self(*arguments, **settings)
        if not isinstance(found, kind):
            raise ConfigError(
                f"{self.target} does not make a {kind.__name__}. Choose another class."
            )
        return found

    def factory(self) -> Callable[..., Any]:
        """Return a function that makes the object.

        Raises:
            ConfigError: If the class is not trusted, or cannot be imported.
        """
        self._check()
        values = dict(self.values)
        name = {"name": values["name"]} if self.keep_name and "name" in values else {}
        try:
            # as a partial, so that Hydra does not wrap errors of the class
            made = instantiate(
                {**_nameless(values), **name, "_partial_": True, "_convert_": "all"}
            )
        except HydraException as error:
            raise ConfigError(
                f"{self.target} cannot be used: {_reason(error)}"
            ) from error
        return partial(make, made.func, **made.keywords)

    def named_class(self) -> Callable[..., Any]:
        """Return the class or function that the option names, if it is trusted."""
        made: Any = self.factory()
        found: Callable[..., Any] = made.args[0]
        return found

    def _check(self) -> None:
        """Raise an error if the settings must not be used to make an object."""
        values = self.values
        if "_target_" not in values:
            raise ConfigError(
                f"A part of the configuration names no class (_target_): {values}"
            )
        # keys in YAML can be numbers
        if not all(isinstance(key, str) for key in values):
            raise ConfigError(
                f"{self.target} has a setting whose name is not text: {values}"
            )
        for problem in _refusals(values, self.trust):
            raise ConfigError(problem)
        for text in texts_in(values):
            if "${" in text:  # Hydra would resolve it to a value that was not checked
                raise ConfigError(
                    f"A setting contains an interpolation as text: {text}. Write the value instead."
                )


def factory(node: DictConfig, keep_name: bool = False) -> Callable[..., Any]:
    """Return a factory for the object of a config node; the caller adds the arguments of the run.

    Args:
        node: A config node with a ``_target_``.
        keep_name: Whether to pass the name of the option as an argument, too.
    """
    if not isinstance(node, DictConfig):
        raise ConfigError(
            f"A part of the configuration is not a group of settings: {node}"
        )
    try:
        values = OmegaConf.to_container(node, resolve=True)
    except OmegaConfBaseException as error:  # an interpolation refers to a missing key
        raise ConfigError(error_text(error)) from error
    root = node._get_root()
    trust = root.get("trust") or () if isinstance(root, DictConfig) else ()
    return Option.of(values, trust, keep_name).factory()


def _reason(error: BaseException) -> str:
    """Return the first cause of an error, which is more specific than Hydra's own message."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, ModuleNotFoundError):
        return f"there is no module {error.name} (PYTHONPATH must contain its folder)"
    if isinstance(error, SyntaxError):
        return f"{error.filename}, line {error.lineno}: {error.msg}"
    return str(error)


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


OTHERS = (
    "pytorch_lightning.callbacks.DeviceStatsMonitor",
    "pytorch_lightning.callbacks.Timer",
)
"""Trusted classes that no option names. Those of Lightning write no files and call nothing."""

OWN_PACKAGE = "emea."
"""Beginning of the names of all classes and functions of emea."""

OPTIMISER = re.compile(r"torch\.optim\.[A-Z]\w*")
TARGET = re.compile(r"^ *_target_: *(\S+)$", re.MULTILINE)


@cache
def our_targets() -> frozenset[str]:
    """Return the classes and functions that the options of ``conf/`` name, and a few others.

    Other functions of emea are not trusted: they write to any path, or contact any host.
    """
    files = (file for group in group_names() for file in (CONF / group).rglob("*.yaml"))
    found = (
        target for file in files for target in TARGET.findall(file.read_text("utf-8"))
    )
    return frozenset((*found, *OTHERS))


def check_trusted(config: DictConfig) -> None:
    """Raise an error if a config names an untrusted class.

    Raises:
        ConfigError: If it does. The message names the key and the class.
    """
    for problem in untrusted_targets(config):
        raise ConfigError(problem)


def untrusted_targets(config: DictConfig) -> Iterator[str]:
    """Return a sentence for each class that is neither ours nor in a trusted module."""
    settings = OmegaConf.to_container(config, resolve=False)
    return _refusals(settings, config.get("trust") or ())


def texts_in(node: Any) -> Iterator[str]:
    """Yield all texts of nested values and keys."""
    if isinstance(node, str):
        yield node
    children = (
        node.items()
        if isinstance(node, dict)
        else node
        if isinstance(node, list)
        else ()
    )
    for child in children:
        yield from texts_in(list(child) if isinstance(child, tuple) else child)


def _refusals(settings: Any, trust: Sequence[str]) -> Iterator[str]:
    trusted = tuple(f"{module}." for module in trust)
    for key, target in _targets(settings, ""):
        # the value of an interpolation is not known here
        is_known = isinstance(target, str) and "${" not in target
        is_ours = is_known and (target in our_targets() or OPTIMISER.fullmatch(target))
        if is_ours or (is_known and target.startswith(trusted)):
            continue
        if is_known and target.startswith(OWN_PACKAGE):
            # trust cannot help: a module of this package is missing, or not meant for settings
            yield (
                f"{key} names {target}, which is not a class of runs in this version of emea. If a "
                "run folder names it, another version of emea wrote that run: read it with that "
                "version, or repeat the run with this one. Its run.json has its commit and its "
                "command."
            )
            continue
        module = str(target).rpartition(".")[0] or target
        yield (
            f"{key} names {target}, which is neither a class of emea's runs nor an optimiser "
            f"of torch. If you trust that module, add trust=[{module}], or --trust {module} to "
            "read a finished run."
        )


def _targets(node: Any, key: str) -> Iterator[tuple[str, Any]]:
    if isinstance(node, list):
        for index, value in enumerate(node):
            yield from _targets(value, f"{key}[{index}]")
    elif isinstance(node, dict):
        for name, value in node.items():
            place = f"{key}.{name}" if key else str(name)
            if name == "_target_":
                yield place, value
            else:
                yield from _targets(value, place)
