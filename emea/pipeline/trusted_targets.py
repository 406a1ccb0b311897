"""Which classes a configuration may name: a config from elsewhere must not run just anything."""

from collections.abc import Iterator, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf

from emea.errors import ConfigError

OURS = ("emea.", "torch.optim.")


def check_trusted(config: DictConfig) -> None:
    """Refuse a config that names a class from elsewhere.

    Raises:
        ConfigError: names the key and the class.
    """
    problem = next(untrusted_targets(config), None)
    if problem is not None:
        raise ConfigError(problem)


def untrusted_targets(config: DictConfig) -> Iterator[str]:
    """A sentence for each class that is neither ours nor of a module the user vouches for."""
    trusted = [*OURS, *(f"{module}." for module in config.get("trust") or ())]
    settings = OmegaConf.to_container(config, resolve=False)
    for key, target in _targets(settings, ""):
        if not _is_below(target, trusted):
            module = str(target).rpartition(".")[0] or target
            yield (
                f"{key} names {target}, which is neither part of emea nor an optimiser of torch; "
                f"if you know that module, say so: trust=[{module}]"
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


def _is_below(target: Any, trusted: Sequence[str]) -> bool:
    # an interpolation is no name yet: what it will be is not known here
    return isinstance(target, str) and "${" not in target and target.startswith(tuple(trusted))
