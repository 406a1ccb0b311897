"""Where the configuration lies and which options it offers."""

from pathlib import Path

CONF = Path(__file__).resolve().parents[2] / "conf"

PRESETS = ("experiment", "variant")
"""Groups that set others' values and need not be chosen."""


def required_groups() -> list[str]:
    """The groups of which each run has an option."""
    return [name for name in group_names() if name not in PRESETS]


def group_names() -> list[str]:
    """The groups of ``conf/``, Hydra's own apart."""
    return sorted(path.name for path in CONF.iterdir() if path.is_dir() and path.name != "hydra")


def option_names(group: str) -> list[str]:
    """The options of a group, those in subfolders with their path."""
    folder = CONF / group
    files = folder.rglob("*.yaml")
    return sorted((file.relative_to(folder).as_posix().removesuffix(".yaml")) for file in files)
