"""The pages: every link leads somewhere, lines are short, and each page is where its kind is."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from unit_docs.links import anchor, anchors, dead, dead_in_site, relative
from unit_docs.targets import called, there

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
COLUMNS = 100
EXEMPT = re.compile(r"/prose/|^docs/(measurements/|(attacks|never)\.md)")
"""Pages that a program writes or puts together."""


def pages() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    files = [ROOT / name for name in listed.stdout.splitlines()]
    return [file for file in files if file.exists()]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def written_by_hand(page: Path) -> bool:
    return not EXEMPT.search(name(page))


def whole(page: Path) -> bool:
    return "/prose/" not in name(page)


def book() -> list[Path]:
    return [page for page in pages() if page.is_relative_to(DOCS) and page.name != "SUMMARY.md"]


@pytest.mark.parametrize(
    "page", [page for page in pages() if "/prose/" not in name(page)], ids=name
)
def test_each_link_leads_somewhere(page: Path) -> None:
    assert not list(dead(page))


@pytest.mark.parametrize("page", book(), ids=name)
def test_a_page_of_the_site_links_to_pages_of_the_site(page: Path) -> None:
    outside = [path for _, path, _ in relative(page) if path.startswith("../" * len(depth(page)))]
    assert not outside, "name other files as code: the site does not have them"


def depth(page: Path) -> tuple[str, ...]:
    return page.relative_to(DOCS).parts


def test_each_page_has_its_place_in_the_summary() -> None:
    listed = {path for _, path, _ in relative(DOCS / "SUMMARY.md")}
    assert listed == {str(page.relative_to(DOCS)) for page in book()}


def test_what_the_search_leaves_out_is_there_and_is_no_page_of_users() -> None:
    book = tomllib.loads((DOCS / "book.toml").read_text(encoding="utf-8"))
    left_out = book["output"]["html"]["search"]["chapter"]
    assert {"measurements", "decisions"} <= set(left_out)
    assert all((DOCS / chapter).exists() for chapter in left_out)
    summary = (DOCS / "SUMMARY.md").read_text(encoding="utf-8")
    users = re.findall(r"\(([\w-]+\.md)\)", summary.split("# How it works")[0])
    assert len(users) > 20
    assert not set(users) & set(left_out)


@pytest.mark.parametrize("page", [page for page in pages() if written_by_hand(page)], ids=name)
def test_lines_are_short(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    long = [
        f"{number}: {line}"
        for number, line in enumerate(lines, 1)
        if len(line) > COLUMNS and not line.lstrip().startswith("|") and "](" not in line
    ]
    assert not long


def test_a_measurement_says_what_renews_it() -> None:
    measurements = sorted((DOCS / "measurements").glob("*.md"))
    assert measurements
    for page in measurements:
        head = "\n".join(page.read_text(encoding="utf-8").splitlines()[:12])
        named = called(head, "`|^ {4}")
        assert named, f"{name(page)} does not say what renews it"
        assert named <= there(), f"{name(page)}: no Makefile has {named - there()}"


def test_the_commands_of_the_readme_exist() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = called(text, "^ {4}")
    assert {"demo", "test"} <= shown <= there()


def named_files(text: str) -> set[str]:
    """Return the files and folders that a page names as code, without those that stand for many."""
    spans = set(re.findall(r"`([\w./-]+)`", text))
    like_files = {span for span in spans if "/" in span or re.search(r"\.(?:rs|c|py)$", span)}
    return {span for span in like_files if not re.search(r"TAG|NNNN", span)}


def test_each_file_that_the_architecture_names_is_there() -> None:
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    folders = {str(parent) for name in listed for parent in Path(name).parents}
    ends = {f"/{one}" for one in {*listed, *folders}}
    named = named_files((DOCS / "architecture.md").read_text(encoding="utf-8"))
    assert len(named) > 50
    missing = {one for one in named if not any(end.endswith(f"/{one.strip('/')}") for end in ends)}
    assert not missing


def test_the_engines_version_is_the_engines() -> None:
    engine = (ROOT / "tuner-service/engine/src/lib.rs").read_text()
    version = re.search(r'ENGINE_VERSION: &str = "io-autotune-engine (\d+)"', engine)
    assert version
    assert f"(now {version[1]};" in (DOCS / "compatibility.md").read_text()


def test_dead_links_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b`: c\n\n[a](#a-b-c) [b](#b) [c](none.md) `[d](none.md)` [e](http://e)\n")
    assert anchors(page) == {"a-b-c"}
    assert anchor("What's *left*, once?") == "whats-left-once"
    assert list(dead(page)) == [
        f"{page}:3: page.md has no heading #b",
        f"{page}:3: there is no none.md",
    ]
    (tmp_path / "index.html").write_text('<a id="x" href="#y">y</a><img src="no.png"><a href="#x">')
    assert len(list(dead_in_site(tmp_path))) == 2
