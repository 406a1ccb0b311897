"""JSON objects from files that may be damaged, or come from strangers."""

import json
from typing import Any


def json_object(text: bytes) -> dict[str, Any]:
    """The object that a text holds.

    Raises:
        ValueError: it holds none; the message says why.
    """
    try:
        content = json.loads(text.decode())
        # half of a character, which an escape can name, could be written nowhere
        json.dumps(content, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(content, dict):
        raise ValueError("it holds no JSON object")
    return content
