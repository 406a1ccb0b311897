"""HTML pages that work offline: their frame, style and scripts."""

import base64
import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@cache
def template_environment(package: str) -> Environment:
    """Return the environment of a package's templates, which escapes all text by default."""
    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def html_document(
    title: str, body: str, style: str, scripts: Sequence[str] = (), kind: str = ""
) -> str:
    """Return a complete HTML page.

    The page's content security policy only allows its own style and scripts, so that names from
    the data could not run or load anything even if they were not escaped.

    Args:
        title: The title of the window.
        body: The content, as HTML.
        style: The style sheet.
        scripts: The scripts.
        kind: The class of the body, for special styles.
    """
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none'; "
        f"style-src '{_digest(style)}'"
    )
    if scripts:
        policy += "; script-src " + " ".join(
            f"'{_digest(script)}'" for script in scripts
        )
    frame = template_environment("emea.results").get_template("frame.html")
    return frame.render(
        title=title,
        policy=policy,
        body=Markup(body),
        style=style,
        scripts=scripts,
        kind=kind,
    )


def page_style() -> str:
    """Return the style sheet that all pages share."""
    return resource("emea.results", "page.css")


def resource(package: str, name: str) -> str:
    """Return the text of a file of a package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
