"""Where the addresses of a report lead from a page that shows it."""

import os
import posixpath
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from emea.errors import UserError
from emea.reporting.embedded_image import data_uri


class PageLinks:
    """Addresses of a report, seen from the page.

    Args:
        name: The report's name.
        folder: The folder it lies in.
        place: The folder the page lies in.
        names: The name of the part in each folder.
    """

    def __init__(self, name: str, folder: Path, place: Path, names: Mapping[Path, str]) -> None:
        self._name = name
        self._folder = folder
        self._names = names
        self._prefix = quote(Path(os.path.relpath(folder, place)).as_posix())

    def address(self, href: str) -> str:
        """Where a link leads: to another part of the page, to a file, or abroad."""
        link = urlsplit(href)
        if link.scheme or link.netloc or link.path.startswith("/"):
            return href
        part = self._part_at(link.path) if link.path else self._name
        if part is not None:
            return f"#{part}.{link.fragment}" if link.fragment else f"#{part}"
        path = posixpath.normpath(posixpath.join(self._prefix, link.path))
        return link._replace(path=path).geturl()

    def picture(self, source: str) -> str:
        """A picture's file as an address that holds it."""
        link = urlsplit(source)
        if link.scheme or link.netloc:
            raise UserError(f"{self._name} shows {source}; a page holds files only.")
        return data_uri(self._folder / unquote(link.path))

    def _part_at(self, path: str) -> str | None:
        """The part whose report the path names."""
        file = Path(os.path.abspath(self._folder / unquote(path)))
        return self._names.get(file.parent) if file.suffix == ".md" else None
