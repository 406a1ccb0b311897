"""The frame of our HTML pages: one file, its own style and script, no request to anywhere."""

import base64
import hashlib
from html import escape
from importlib import resources


def html_document(title: str, body: str, style: str, script: str = "", kind: str = "") -> str:
    """A whole page.

    Names in it come from data: even one that slipped past the escaping could load and run nothing
    but the page's own style and script, which the browser knows by their hashes.

    Args:
        title: of the window.
        body: what the page shows.
        style: its CSS.
        script: its JavaScript; empty: it has none.
        kind: class of the body, for styles of its own.
    """
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'"
    )
    policy += f"; script-src '{_digest(script)}'" if script else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body{f' class="{kind}"' if kind else ""}>
{body}
{f"<script>{script}</script>" + chr(10) if script else ""}</body>
</html>
"""


def page_style() -> str:
    """The style that all pages share."""
    return page_resource("page.css")


def page_resource(name: str) -> str:
    """A file that belongs to the pages."""
    return resources.files("emea.reporting").joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
