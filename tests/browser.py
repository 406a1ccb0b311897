"""Chromium for tests that look at pages as a person does."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
TIMEOUT_MS = 30_000


def chromium_path() -> str | None:
    """The installed browser; `EMEA_CHROMIUM` names one in an unusual place."""
    named = os.environ.get("EMEA_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def launched() -> Iterator[Any]:
    """A headless Chromium; the test is skipped where there is none to launch."""
    api = pytest.importorskip(
        "playwright.sync_api",
        reason="playwright is missing: pip install -e '.[browser]'",
    )
    path = chromium_path()
    if path is None:
        pytest.skip("Chromium is missing: install it or name it with EMEA_CHROMIUM")
    with api.sync_playwright() as playwright:
        # the pages are our own, and the sandbox refuses to run as root, as in containers
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"]
        )
        yield browser
        browser.close()


class Visit:
    """A page and what happened behind it.

    Args:
        browser: A launched browser.
        settings: Playwright's settings of the context, e.g. `color_scheme`.

    Attributes:
        page: Playwright's page.
        requests: Addresses the page asked for.
        errors: What the console and the scripts complained of.
    """

    def __init__(self, browser: Any, **settings: Any) -> None:
        settings = {"viewport": {"width": 1400, "height": 1000}} | settings
        self._context = browser.new_context(**settings)
        self._context.set_default_timeout(TIMEOUT_MS)
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page = self._context.new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._hear)

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.errors.append(message.text)

    def open(self, address: str | Path) -> Any:
        """Go to an address, or to a file on this disk."""
        self.page.goto(address.as_uri() if isinstance(address, Path) else address)
        return self.page

    def close(self) -> None:
        """Leave nothing open."""
        self._context.close()
