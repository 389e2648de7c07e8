"""Writes docs/attacks.md and docs/never.md from the markers on the tests.

    python3 tests/promises.py            writes both pages
    python3 tests/promises.py --check    fails where a page is not what the markers say

A marker stands on the test itself: in Rust in the doc comment directly above it (``///``), in C in
the comment directly above it (``//``), in Python in its docstring. ``Promise: CLAUSE`` names a row
of ``CLAUSES``; a test may have several. ``Attack (SECTION): what it tries.`` names one of
``SECTIONS``, and ``Outcome: what comes of it.`` follows it. What a marker says goes on until a
blank line or the next marker. CONTRIBUTING.md has an example. An invariant of the soak names its
promises in ``Invariant.promises``.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tables import table

TREE = Path(__file__).resolve().parents[1]
PLACES = ("tuner-service", "spank-plugin", "analysis", "tests")
"""Where tests are."""
BUILT = frozenset({"build", "target", "__pycache__"})
"""Directories of what is built."""
OF_SOAK = "tests/soak/invariants.py"
"""Where the soak's invariants are."""

CLAUSES = (
    "a job fails",
    "a job hangs, or waits longer than the deadline",
    "a submission fails",
    "a node drains",
    "a setting stays changed after a job",
    "a variable that the user set is overwritten",
    "a failed run is taken for a fast one",
    "a report is lost",
    "a report is counted twice",
    "what a study knows is removed",
    "a user steers another user's study",
    "a user reads another user's study",
    "one user alone decides what others who share run",
    "a wrong gain is reported",
)
"""What must never happen, in the order of the page."""


@dataclass(frozen=True)
class Section:
    """A part of docs/attacks.md."""

    heading: str
    before: str = ""
    """What stands above its table."""
    after: str = ""
    """What stands below it."""


SECTIONS = {
    "files": Section(
        "Files on a node",
        "Where they are, and whose each directory is, says [the node](node.md#files).",
    ),
    "environment": Section(
        "What the user's environment and options say",
        """\
What can be seen of a control run by its own job is in [limits](limits.md); what other characters of
a job's name become is in [applications](applications.md).""",
    ),
    "service": Section(
        "The service",
        """\
Requests and answers are [signed](protocol.md#signatures), users and nodes have
[two doors](protocol.md#two-doors), and [a table](access.md) says who may do what.
[Root leaves answers to nobody](decisions/0026-answers-are-read-apart.md). What one user can do to
others who [share](sharing.md#what-is-heard) a study, or [begin](priors.md) from it, is bounded.

`[access] check_origins` is off unless a site sets it: many a munged knows its host as 127.0.1.1.
The log has ten lines of refusals in 10 s, and the number of the others.""",
    ),
    "units": Section(
        "Units, database, accounts",
        "[Each unit](install.md#3-files) of systemd leaves its program what its work needs.",
    ),
    "remembered": Section("What is remembered"),
    "second-round": Section(
        "The second round",
        "A reader with fresh eyes attacked a running cluster again. What broke and was mended:",
        """\
What held: a fork bomb of a command's whose processes change their number; 1,500 starts while all
privileged ports wait for stray packets; replays and explanations without pause beside another
user's requests; a file system in user space over the file of observed values, which the kernel
refuses to root; 20,000 silent connections at once.

`explain` leaves out the steps of reports that have more than 500, and shows 64 reports of a run.

What is open:

- Root of a node can start a run of a job that is elsewhere before its own node does, in the same
  user's name. It learns what the study would give; the job runs with it, and does not count. Slurm
  is not asked in a prolog.
- All connections of a login host, held by one of its users: its others get no preview and no
  status. Jobs go on.""",
    ),
    "parsers": Section(
        "Parsers of foreign text",
        """\
Each has a [fuzz target](decisions/0016-fuzz-targets-are-tests.md), which gives it kept inputs,
samples, and thousands of inputs made of them. Nothing panics.""",
    ),
}
"""The sections by the keys of markers, in the order of the page."""

ATTACKS = """\
# Attacks

Attacks on a node's root, the service, or another user; what comes of each; the test that tries it.
`make promises` writes this page from the markers on the tests, and a unit test compares the two. A
new file that root reads, a new request, or a new printed text gets a test with a marker:
`CONTRIBUTING.md` says how. Nothing stops an attacker who can write as root, as the service's
account, or in its database.
"""
NEVER = """\
# What must never happen

Each row is a promise, with the tests on a real cluster that would notice a breach. `make test` runs
them, `make test-slow` those of `test_lives_slow.py` and `test_lives_clusters.py`. The
[soak](measurements/soak.md) checks its invariants while everything is killed, stopped, filled and
forged. `make promises` writes this page from the markers on the tests, and a unit test compares the
two.

"""


@dataclass(frozen=True)
class Marked:
    """What a marker stands on."""

    path: str
    """Of its file, in the tree."""
    name: str
    is_fixture: bool = False
    """Whether it is part of every test below its directory."""


@dataclass(frozen=True)
class Attack:
    """A row of docs/attacks.md."""

    section: str
    attack: str
    outcome: str
    test: Marked


@dataclass(frozen=True)
class Promise:
    """A test of a row of docs/never.md."""

    clause: str
    test: Marked


@dataclass(frozen=True)
class Kept:
    """An invariant of the soak, and what would be broken without it."""

    name: str
    promises: tuple[str, ...]


@dataclass
class Markers:
    """What the markers of a tree say."""

    attacks: list[Attack] = field(default_factory=list)
    promises: list[Promise] = field(default_factory=list)
    invariants: list[Kept] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What is wrong with markers, by file and line."""


Lines = list[tuple[int, str]]
"""Lines of a comment without what makes them one, with their numbers in the file."""


@dataclass(frozen=True)
class Comment:
    """A comment, and what it stands on."""

    lines: Lines
    test: Marked | None
    about: str
    """What it stands on, if that is no test."""


@dataclass
class Mark:
    """A marker, or a half of one."""

    line: int
    key: str
    section: str | None
    text: str


KEY = re.compile(r"(promises?|attacks?|outcomes?) ?(?:\(([^)]*)\))? ?:(?: +(.*))?", re.IGNORECASE)
"""How a marker begins, and what somebody may have meant for one."""
FUNCTION_OF_RUST = re.compile(r"(?:pub(?:\([^)]*\))? |const |async |unsafe )*fn (\w+)")
TEST_OF_RUST = re.compile(r"#\[(?:\w+::)*test\b")
FUNCTION_OF_C = re.compile(r"(?:static )?\w[\w *]*?\b(\w+)\(")
TESTS_OF_C = re.compile(r"struct CMUnitTest \w+\[\] = \{(.*?)\};", re.DOTALL)
"""What cmocka is given to run."""
FUZZ_TARGET_OF_C = "LLVMFuzzerTestOneInput"


def comments_of_rust(path: str, text: str) -> Iterator[Comment]:
    """Yield the doc comments of a file in Rust, and others that have a marker."""
    lines: Lines = []
    attributes: list[str] = []
    is_open = 0
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        if is_open > 0 or stripped.startswith("#["):
            # One may go over several lines.
            attributes.append(stripped)
            is_open += stripped.count("[") - stripped.count("]")
            continue
        if stripped.startswith("///"):
            lines.append((number, stripped[3:].strip()))
            continue
        if stripped.startswith("//") and KEY.match(stripped.strip("/! ")):
            yield Comment([(number, stripped.strip("/! "))], None, "a comment that is no test's")
        if lines:
            function = FUNCTION_OF_RUST.match(stripped)
            is_test = function and any(TEST_OF_RUST.match(one) for one in attributes)
            test = Marked(path, function[1]) if function and is_test else None
            yield Comment(lines, test, stripped or "an empty line")
        lines, attributes = [], []


def comments_of_c(path: str, text: str) -> Iterator[Comment]:
    """Yield the comments of a file in C that stand on something."""
    lines: Lines = []
    tests = {FUZZ_TARGET_OF_C}
    for listed in TESTS_OF_C.findall(text):
        tests.update(re.findall(r"\((\w+)", listed))
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        if stripped.startswith("//"):
            lines.append((number, stripped[2:].strip()))
            continue
        if KEY.match(stripped.lstrip("/* ")):
            yield Comment([(number, stripped.lstrip("/* "))], None, "a comment of another form")
        if lines:
            function = FUNCTION_OF_C.match(line)
            test = Marked(path, function[1]) if function and function[1] in tests else None
            yield Comment(lines, test, stripped or "an empty line")
        lines = []


def comments_of_python(path: str, text: str) -> Iterator[Comment]:
    """Yield the docstrings of a file in Python, and comments that have a marker."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        said = ast.get_docstring(node, clean=False)
        if said is None:
            continue
        first = node.body[0].lineno
        lines = [(first + place, line.strip()) for place, line in enumerate(said.splitlines())]
        if isinstance(node, ast.Module | ast.ClassDef):
            yield Comment(lines, None, getattr(node, "name", "the module"))
        else:
            yield Comment(lines, _test_of_python(path, node), node.name)
    if any(KEY.match(line.lstrip("# ")) for line in text.splitlines() if "#" in line):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            said = token.string.lstrip("# ")
            if token.type == tokenize.COMMENT and KEY.match(said):
                yield Comment([(token.start[0], said)], None, "a comment that is no docstring")


def _test_of_python(path: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Marked | None:
    file = Path(path).name
    if node.name.startswith("test_") and file.startswith("test_"):
        return Marked(path, node.name)
    is_fixture = any("fixture" in ast.unparse(one) for one in node.decorator_list)
    for_all = any("autouse=True" in ast.unparse(one) for one in node.decorator_list)
    if is_fixture and for_all and file == "conftest.py":
        return Marked(path, node.name, is_fixture=True)
    return None


LANGUAGES: dict[str, Callable[[str, str], Iterator[Comment]]] = {
    ".rs": comments_of_rust,
    ".c": comments_of_c,
    ".py": comments_of_python,
}
"""By the end of a file's name."""


def marks(lines: Lines) -> list[Mark]:
    """Return the markers among the lines of a comment."""
    found: list[Mark] = []
    goes_on = False
    for number, line in lines:
        key = KEY.match(line)
        if key is not None:
            found.append(Mark(number, key[1], key[2], (key[3] or "").strip()))
        elif goes_on and line:
            found[-1].text = f"{found[-1].text} {line}".strip()
        goes_on = key is not None or (goes_on and bool(line))
    return found


def add(markers: Markers, path: str, text: str) -> None:
    """Add what the markers of a file say."""
    for comment in LANGUAGES[Path(path).suffix](path, text):
        found = marks(comment.lines)
        if not found:
            continue
        if comment.test is None:
            what = f"a marker stands directly on a test, and this is none: {comment.about}"
            markers.problems.append(f"{path}:{found[0].line}: {what}")
            continue
        for place, mark in enumerate(found):
            before = found[place - 1] if place else None
            after = found[place + 1] if place + 1 < len(found) else None
            wrong = _problem(mark, before, after)
            if wrong is not None:
                markers.problems.append(f"{path}:{mark.line}: {wrong}")
            elif mark.key == "Promise":
                markers.promises.append(Promise(mark.text, comment.test))
            elif mark.key == "Attack" and after is not None:
                attack = Attack(str(mark.section), mark.text, after.text, comment.test)
                markers.attacks.append(attack)


def _problem(mark: Mark, before: Mark | None, after: Mark | None) -> str | None:
    """Return what is wrong with a marker, if anything."""
    follows = before is not None and before.key == "Attack"
    problems = {
        f"{mark.key} is no marker: Promise, Attack (SECTION) and Outcome are": mark.key
        not in {"Promise", "Attack", "Outcome"},
        f"{mark.key} says nothing": not mark.text,
        f"{mark.key} has no section": mark.key != "Attack" and mark.section is not None,
        _no_promise(mark.text): mark.key == "Promise" and mark.text not in CLAUSES,
        f"there is no section {mark.section!r}: write Attack (SECTION), one of"
        f" {', '.join(SECTIONS)}": mark.key == "Attack" and mark.section not in SECTIONS,
        "an Attack without its Outcome below": mark.key == "Attack"
        and (after is None or after.key != "Outcome"),
        "an Outcome without its Attack above": mark.key == "Outcome" and not follows,
    }
    return next((problem for problem, holds in problems.items() if holds), None)


def files(tree: Path) -> Iterator[Path]:
    """Yield the files that may have markers, in the order of the pages."""
    for place in PLACES:
        for path in sorted((tree / place).rglob("*")):
            if path.suffix in LANGUAGES and not BUILT & set(path.relative_to(tree).parts):
                yield path


def add_invariants(markers: Markers, path: str, text: str) -> None:
    """Add the invariants of the soak, which are data: ``Invariant(NAME, ..., promises=(...))``."""
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "Invariant"):
            continue
        given = {one.arg: one.value for one in node.keywords}
        name = ast.literal_eval(node.args[0])
        promises = ast.literal_eval(given["promises"]) if "promises" in given else ()
        markers.invariants.append(Kept(name, promises))
        where = f"{path}:{node.lineno}: the invariant {name!r}"
        if not promises:
            markers.problems.append(f"{where} has no promises")
        markers.problems += [
            f"{where}: {_no_promise(promise)}" for promise in promises if promise not in CLAUSES
        ]


def _no_promise(text: str) -> str:
    return f"there is no promise {text!r} among CLAUSES of tests/promises.py"


def read(tree: Path = TREE) -> Markers:
    """Return what all markers of a tree say."""
    markers = Markers()
    for path in files(tree):
        add(markers, str(path.relative_to(tree)), path.read_text(encoding="utf-8"))
    add_invariants(markers, OF_SOAK, (tree / OF_SOAK).read_text(encoding="utf-8"))
    return markers


def attacks_page(markers: Markers) -> str:
    """Return docs/attacks.md."""
    parts = [ATTACKS]
    for key, section in SECTIONS.items():
        rows = [
            (one.attack, one.outcome, f"`{one.test.path}` `{one.test.name}`")
            for one in markers.attacks
            if one.section == key
        ]
        parts.append(f"\n## {section.heading}\n\n")
        parts.append(f"{section.before}\n\n" if section.before else "")
        parts.append(table(("attack", "outcome", "test"), rows))
        parts.append(f"\n{section.after}\n" if section.after else "")
    return "".join(parts)


def never_page(markers: Markers) -> str:
    """Return docs/never.md."""
    rows = []
    for clause in CLAUSES:
        tests = [shown(one.test) for one in markers.promises if one.clause == clause]
        of_soak = [f"`{one.name}`" for one in markers.invariants if clause in one.promises]
        rows.append((clause, ", ".join(tests), ", ".join(of_soak)))
    header = ("must never happen because of us", "tests", "invariant of the soak")
    return NEVER + table(header, rows)


def shown(test: Marked) -> str:
    """Return how docs/never.md names a test: one on a real cluster without its directory."""
    name = f"`{test.path.removeprefix('tests/cluster/')}::{test.name}`"
    if test.is_fixture:
        return f"all of `{Path(test.path).parent}`, by the fixture {name}"
    return name


def pages(markers: Markers) -> dict[str, str]:
    """Return both pages, by their paths."""
    return {
        "docs/attacks.md": attacks_page(markers),
        "docs/never.md": never_page(markers),
    }


def main(argv: list[str]) -> int:
    """Do what the command line asks for, and return the exit status."""
    if argv not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    markers = read()
    problems = list(markers.problems)
    for page, text in pages(markers).items():
        path = TREE / page
        if not argv and not problems:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            problems.append(f"{page} is not what the markers say: `make promises` renews it")
    print("".join(f"{problem}\n" for problem in problems), end="", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
