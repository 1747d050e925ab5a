"""HTML of the templates and style sheets in `html/`, for pages and reports; templates escape what they are given."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "html"


@cache
def style(name: str) -> str:
    """A style sheet: `coloured`, `answer` or `forest`."""
    return (FOLDER / f"{name}.css").read_text("utf-8")


@cache
def _template(name: str):
    import jinja2  # here, since pages read the style sheets first

    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(FOLDER), autoescape=True, trim_blocks=True)
    environment.filters["minus"] = lambda number: f"{number:g}".replace("-", "−")
    return environment.get_template(f"{name}.html.j2")


def html(template: str, **fields: Any) -> str:
    """The HTML of a template. What is HTML already must be `Markup`; everything else is escaped."""
    return _template(template).render(**fields)
