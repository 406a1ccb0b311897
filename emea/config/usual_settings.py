"""Usual choices of model and EM, for the Python API and `emea align`."""

from collections.abc import Iterable, Sequence

CPU_SETTINGS = ("model=lightea", "em=one_to_one", "em.iterations=3")
"""LightEA needs no training: it takes minutes for 15,000 entities on two cores."""


GPU_SETTINGS = ("model=rrea", "em=one_to_one")
"""Like the settings for a CPU, the model comes first."""


INDEPENDENT = "ensemble=independent"
"""Several encoders, whose agreement makes probabilities reliable (docs/exports.md); used if neither
model nor EM is chosen."""


ON_CPU = (
    INDEPENDENT,
    "em.iterations=2",
    "ensemble.shared_fits=1",
    "ensemble.folds=true",
)
"""Fewer iterations, so that three LightEA take about twice as long as one; they only differ by
random numbers, so each is trained on other links."""


OF_ONE_ENCODER = {"method", "model", "em", "training", "ensemble", "initial_from"}
"""Settings that choose a method, which need not be able to use several encoders."""


LITERALS = "literals=similar"
"""Used if there are few links or none (docs/literals.md)."""


AUTO = "auto"
"""Name of the choice that fits the device, for ``model`` and ``em``."""


def fitting_settings(model: str, em: str, has_gpu: bool) -> list[str]:
    """Return overrides for a model and an EM; ``auto`` chooses them by the device.

    Further settings of the device's EM are only used if the EM is ``auto``, and several encoders
    only if both are.
    """
    own_model, *own_em = GPU_SETTINGS if has_gpu else CPU_SETTINGS
    chosen = own_model if model == AUTO else f"model={model}"
    several = ([INDEPENDENT] if has_gpu else ON_CPU) if model == em == AUTO else []
    return [chosen, *(own_em if em == AUTO else [f"em={em}"]), *several]


def with_own(usual: Sequence[str], own: Sequence[str]) -> list[str]:
    """Return the usual settings before those of the user; one encoder if these choose a method."""
    keys = {setting.lstrip("+~").partition("=")[0] for setting in own}
    several = keys.isdisjoint(OF_ONE_ENCODER) and "em.iterations=0" not in own
    return [*(usual if several else of_one_encoder(usual)), *own]


def of_one_encoder(settings: Iterable[str]) -> list[str]:
    """Return the settings without those of several encoders."""
    return [setting for setting in settings if setting not in ON_CPU]
