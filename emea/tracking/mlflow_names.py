"""Names and values in the form MLflow accepts."""

import re

# The smallest limits among the MLflow versions in use; the sqlite store allows a little more.
MAX_NAME_LENGTH = 250
MAX_PARAM_LENGTH = 6000
MAX_TAG_LENGTH = 5000

_FORBIDDEN = re.compile(r"[^\w./ -]")


def metric_name(name: str) -> str:
    """The name under which MLflow keeps a metric, parameter or tag: `hit@1` is `hit_at_1`."""
    allowed = _FORBIDDEN.sub("_", name.replace("@", "_at_"))
    # MLflow takes names for paths and refuses those that are not in normal form.
    parts = [part for part in allowed.split("/") if part not in ("", ".", "..")]
    return "/".join(parts)[:MAX_NAME_LENGTH] or "_"


def cut(value: object, length: int) -> str:
    """The value as text, its end replaced by an ellipsis where it is too long."""
    text = str(value)
    return text if len(text) <= length else text[: length - 1] + "…"
