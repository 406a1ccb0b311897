"""Pictures that travel inside a page."""

import base64
from pathlib import Path

from emea.errors import UserError

MIME_TYPES = {
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
}


def data_uri(path: Path) -> str:
    """A picture as an address that holds it whole.

    Args:
        path: The picture's file; an SVG of the same name beside it is taken in its place, since
            lines stay sharp in it at any size.

    Raises:
        UserError: If there is no such file or it is no picture.
    """
    drawing = path.with_suffix(".svg")
    path = drawing if drawing.is_file() else path
    mime = MIME_TYPES.get(path.suffix.lower())
    if mime is None:
        raise UserError(f"{path} is no picture that a page can hold: {', '.join(MIME_TYPES)}.")
    if not path.is_file():
        raise UserError(f"A report shows {path}, which is not there.")
    return f"data:{mime};base64,{base64.b64encode(path.read_bytes()).decode('ascii')}"
