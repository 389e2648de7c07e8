"""Finds links that lead nowhere, in the tree's Markdown and in the site that mdBook makes of it.

``python3 tests/unit_docs/links.py build/book`` checks the site. Nothing is fetched.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

_LINK = re.compile(r"\]\(([^()\s]+)\)")
_FENCE = re.compile(r"^ {0,3}(```|~~~)")
_ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the numbered lines outside code blocks, without their code spans."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`", "", line)


def anchor(heading: str) -> str:
    """Return the id that mdBook and forges give to a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return kept.replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the ids of a page's headings; a repeated one gets a number."""
    seen: Counter[str] = Counter()
    found = set()
    fenced = False
    for line in page.read_text(encoding="utf-8").splitlines():
        if _FENCE.match(line):
            fenced = not fenced
        elif not fenced and (heading := re.match(r"#{1,6} (.*)", line)):
            name = anchor(heading[1])
            found.add(f"{name}-{seen[name]}" if seen[name] else name)
            seen[name] += 1
    return frozenset(found)


def relative(page: Path) -> Iterator[tuple[int, str, str]]:
    """Yield line, path and anchor of each link of a page to a file."""
    for number, line in prose(page.read_text(encoding="utf-8")):
        for target in _LINK.findall(line):
            if not _ELSEWHERE.match(target):
                path, _, name = target.partition("#")
                yield number, unquote(path), name


def dead(page: Path) -> Iterator[str]:
    """Yield what is wrong with the links of a page."""
    for number, path, name in relative(page):
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            yield f"{page}:{number}: there is no {path}"
        elif name and file.suffix == ".md" and name not in anchors(file):
            yield f"{page}:{number}: {path or page.name} has no heading #{name}"


class _Page(HTMLParser):
    """Collects the ids and the links of one page of the site."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element's id and what it refers to."""
        for key, value in attrs:
            if key == "id":
                self.ids.add(value or "")
            elif value and key in ("href", "src") and tag in ("a", "img", "link", "script"):
                self.links.append(value)


@cache
def _parsed(file: Path) -> _Page:
    page = _Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def dead_in_site(site: Path) -> Iterator[str]:
    """Yield the dead links of a site; its page for errors is served under any path."""
    for file in sorted(site.rglob("*.html")):
        if file.name == "404.html":
            continue
        for link in _parsed(file).links:
            path, _, name = link.partition("#")
            if _ELSEWHERE.match(link):
                continue
            target = (file.parent / unquote(path)).resolve() if path else file
            if not target.is_file():
                yield f"{file}: there is no {link}"
            elif name and target.suffix == ".html" and unquote(name) not in _parsed(target).ids:
                yield f"{file}: {link} leads to no element"


if __name__ == "__main__":
    problems = list(dead_in_site(Path(sys.argv[1])))
    if problems or not any(Path(sys.argv[1]).glob("*.html")):
        sys.exit("\n".join(problems) or f"{sys.argv[1]}: there is no site")
