"""What Hydra and OmegaConf say of a configuration, in a sentence."""

NO_LIST = "is not a ListConfig, list or tuple"
"""How OmegaConf says that a list was wanted."""


def sentence(error: Exception) -> str:
    """What is wrong, with the key where the error names it."""
    cause = error.__cause__ or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    key = next((line.split(": ", 1)[1] for line in lines if line.startswith("full_key: ")), "")
    if key and NO_LIST in lines[0]:
        return f"{key} must be a list, such as {key}=[one,two]"
    return f"{key}: {lines[0]}" if key else first_line(error)


def first_line(error: Exception) -> str:
    """The line of an error that says it; Hydra's others advise on syntax."""
    return next((line for line in str(error).splitlines() if line.strip()), repr(error))
