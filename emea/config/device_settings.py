"""The settings that fit the device, for users who choose none."""

CPU_SETTINGS = ("model=lightea", "em=one_to_one", "em.iterations=3")
"""LightEA needs no training: it takes minutes for 15,000 entities on two cores."""

GPU_SETTINGS = ("model=rrea", "em=one_to_one")
"""Like the settings for a CPU, the model comes first."""

AUTO = "auto"
"""Name of the choice that fits the device, for ``model`` and ``em``."""


def fitting_settings(model: str, em: str, has_gpu: bool) -> list[str]:
    """Return overrides for a model and an EM; ``auto`` chooses them by the device.

    Further settings of the device's EM are only used if the EM is ``auto``.
    """
    own_model, *own_em = GPU_SETTINGS if has_gpu else CPU_SETTINGS
    chosen = own_model if model == AUTO else f"model={model}"
    return [chosen, *(own_em if em == AUTO else [f"em={em}"])]
