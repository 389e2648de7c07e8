"""Escaping templates, and hashes of the page's style and script."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from io_autotune_report.render.page import view, words
from io_autotune_report.render.page.figures import (
    convergence,
    inside_job,
    mini,
    runs,
    site,
    surface,
)

_HERE = Path(__file__).parent


def template(name: str) -> Template:
    """A template of the page's, ready to render."""
    return _environment().get_template(name)


def _asset(name: str) -> str:
    return (_HERE / "assets" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def with_code(text: str) -> Markup:
    """Text with code in backticks; units stay with numbers."""
    parts = re.split(r"`([^`]+)`", re.sub(r"(?<=\d) (?=%|s\b)", words.NBSP, words.plain(text)))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part)
        for index, part in enumerate(parts)
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = _asset("page.css"), _asset("page.js")
    environment.globals.update(
        words=words,
        view=view,
        convergence=convergence,
        inside_job=inside_job,
        mini=mini,
        runs=runs,
        site=site,
        surface=surface,
        # The package's own files.
        style=Markup(style),
        script=Markup(script),
        policy=(
            f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
            "img-src data:; base-uri 'none'; form-action 'none'"
        ),
    )
    environment.filters.update(plain=words.plain, count=words.count, with_code=with_code)
    return environment
