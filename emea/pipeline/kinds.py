"""What is typed must be of the kind of what it replaces: a word is no number."""

from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from emea.pipeline.limits import LIMITS, is_number

NULLABLE = ("model.objective.bootstrap_every",)
"""Numbers that may be null, although they are not in their option's file."""


def wrong_kind(key: str, config: DictConfig, usual: DictConfig) -> str | None:
    """A sentence where the value of a key is of another kind than the usual one.

    Args:
        key: of a setting that was typed.
        config: with what was typed.
        usual: without it; what is null there may become anything, and lists and groups of
            settings are compared by what is in them.
    """
    value, replaced = OmegaConf.select(config, key), OmegaConf.select(usual, key)
    if replaced is None or _fits(key, value, replaced):
        return None
    allowed = LIMITS.get(key) or _kind(replaced)
    example = "" if isinstance(replaced, bool) else f" (such as {_typed(replaced)})"
    return f"{key} must be {allowed}{example}, got {'null' if value is None else _typed(value)}"


def _fits(key: str, value: Any, usual: Any) -> bool:
    if value is None:
        # null stands for "none of it" where text or a group of settings may be left out
        return key in NULLABLE or isinstance(usual, str | DictConfig)
    if isinstance(usual, ListConfig) and isinstance(value, ListConfig) and len(usual):
        return all(_kind(item) == _kind(usual[0]) for item in value)
    return _kind(value) == _kind(usual)


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "true or false"
    if is_number(value):
        return "a number"
    if isinstance(value, ListConfig):
        return "a list"
    return "a group of settings" if isinstance(value, DictConfig) else "text"


def _typed(value: Any) -> str:
    """A value as one would type it."""
    return f"[{','.join(map(str, value))}]" if isinstance(value, ListConfig) else str(value)
