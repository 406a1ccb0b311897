"""Which parameters of a run MLflow shows, so that what differs between runs can be seen."""

from collections.abc import Mapping

from emea.tracking.run_record import ParamValue

HIDDEN = (
    "data.download",
    "data.root",
    "export.formats",
    "export.top_k",
    "hydra",
    "initial_from",
    "method.label",
    "method.uses",
    "split.ratio",
    "split.seed",
    "study",
    "tracking",
    "trainer",
)
"""Places on a machine, repetitions of other keys, and how a run is carried out and recorded."""

OPTIONAL = ("model", "training", "rule", "em", "decoding", "search")
"""Groups that mean something to the methods that name them in `method.uses`."""


def compared_params(params: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """The parameters that can make one run's numbers differ from another's.

    Args:
        params: The complete ones, as `run.json` holds them.
    """
    hidden = (*HIDDEN, *_unused_groups(params))
    return {key: value for key, value in params.items() if not _is_hidden(key, hidden)}


def _is_hidden(key: str, hidden: tuple[str, ...]) -> bool:
    # _target_ and _partial_ tell Hydra what an option's name tells a person
    is_machinery = key.rpartition(".")[2].startswith("_")
    return is_machinery or any(key == name or key.startswith(f"{name}.") for name in hidden)


def _unused_groups(params: Mapping[str, ParamValue]) -> list[str]:
    """Groups that the run's method has no use for; records keep the list as text."""
    uses = params.get("method.uses")
    return [] if uses is None else [group for group in OPTIONAL if f"'{group}'" not in str(uses)]
