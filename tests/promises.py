"""Writes docs/attacks.md and docs/never.md from the markers on the tests.

    python3 tests/promises.py            writes both pages
    python3 tests/promises.py --check    fails where a page is not what the markers say

A marker stands on the test itself: in Rust in the doc comment directly above it (``///``), in C in
the comment directly above it (``//``), in Python in its docstring. ``Promise: CLAUSE`` names a row
of ``CLAUSES``; a test may have several. ``Attack (SECTION): what it tries.`` names one of
``SECTIONS``. ``Outcome: what comes of it.`` follows it where the section's ``usually`` does not say
it already. What a marker says goes on until a blank line or the next marker. Tests that try the
same say it in the same words, and are one row. CONTRIBUTING.md has an example. An invariant of the
soak names its promises in ``Invariant.promises``.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import textwrap
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

TREE = Path(__file__).resolve().parents[1]
PLACES = ("tuner-service", "spank-plugin", "analysis", "tests")
"""Where tests are."""
COLUMNS = 100
"""Of the pages' lines."""
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
    usually: str = ""
    """What comes of each attack whose row says nothing else."""
    before: str = ""
    """What stands above its list, below that."""
    after: str = ""
    """What stands below it."""


SECTIONS = {
    "files": Section(
        "Files on a node",
        """\
root follows no link, waits for no file, reads little of what is long, and believes nothing that
others can have written. Nothing outside of the job's own directory is changed, and the job ends as
it would without us.""",
        "[The node's page](node.md#files) says where the files are, and whose each directory is.",
    ),
    "environment": Section(
        "What the user's environment and options say",
        """\
what is malformed is refused, or means nothing, in short printable words. Root runs no program and
loads no library of a user's, and no job gets what another one asked for.""",
        "What becomes of other characters of a job's name is in [applications](applications.md).",
    ),
    "drawn": Section(
        "Which run is a control run",
        "only admins are told before the run has its verdict.",
        """\
Somebody who knew it could cancel control runs and let the others go on, and so prove a gain that is
none. A job's own user can still see what it runs with ([limits](limits.md)).""",
    ),
    "others": Section(
        "Other users' studies, and what is for others",
        """\
what is another user's is answered, word for word, like what does not exist; what is for another
role is refused. Nothing is changed, nor is there a line of it in the audit.""",
        "[A table](access.md) says who may do what.",
    ),
    "service": Section(
        "Requests and answers",
        "the request or the answer is refused, and nothing is done or believed.",
        """\
Requests and answers are [signed](protocol.md#signatures), users and nodes have
[two doors](protocol.md#two-doors), and [answers are read apart from
root](decisions/0026-answers-are-read-apart.md).""",
    ),
    "nodes": Section(
        "Nodes, jobs and what Slurm says of them",
        "the report or the start is refused.",
        """\
`[access] check_origins` is off unless a site sets it, because many a munged knows its host as
127.0.1.1.""",
    ),
    "floods": Section(
        "Floods and limits",
        """\
what is too much is refused before it is read. Others are answered meanwhile, and their jobs are
tuned.""",
    ),
    "values": Section(
        "Impossible values",
        """\
the request is refused, and the refusal names the field in printable text. Nothing is stored, and
the log has no error.""",
    ),
    "sharing": Section(
        "Users who share, or begin from others",
        "one user's runs count little for others.",
        """\
What one user can do to others who [share](sharing.md#which-runs-are-used) a study, or
[begin](priors.md) from it, is bounded.""",
    ),
    "tls": Section(
        "TLS",
        """\
a job runs with defaults within the deadline, and what is wrong is said with its remedy.""",
        "[The guide](install.md#tls) says how a site turns it on.",
    ),
    "database": Section(
        "The database",
        "nothing waits for it, and what is wrong is said with its remedy.",
    ),
    "units": Section(
        "Units, roles and printed text",
        "what is tried is refused.",
        "[Each unit](install.md#3-files) of systemd leaves its program only what its work needs.",
    ),
    "second-round": Section(
        "The second round",
        before="A reader with fresh eyes attacked a running cluster again. What broke, mended:",
        after="""\
What held: a fork bomb of a command's whose processes change their number; 1,500 starts while all
privileged ports wait for stray packets; replays and explanations without pause beside another
user's requests; a file system in user space over the file of observed values, which the kernel
refuses to root; 20,000 silent connections at once.

What is open:

- Root of a node can start a run of a job that is elsewhere before the job's own node does, in the
  same user's name. Slurm is not asked in a prolog. Root learns what the study would give; the job
  runs with it, and does not count.
- One user of a login host can hold all of its connections. The host's other users then get no
  preview and no status; jobs go on.""",
    ),
    "parsers": Section(
        "Parsers of foreign text",
        """\
the text is read, and what is read is bounded and printable, or it is refused in short printable
words that say what is wrong. Nothing panics.""",
        """\
Each has a [fuzz target](decisions/0016-fuzz-targets-are-tests.md), which gives it kept inputs,
samples, and thousands of inputs made of them.""",
    ),
}
"""The sections by the keys of markers, in the order of the page."""

ATTACKS = """\
# Attacks

What an attacker could try against a node's root, the service or another user, *what comes of it*,
and the tests that try it. What usually comes of attacks stands first in each section, and holds for
a row that says nothing else. The name of a test says which part of an attack it tries.

Who attacks from where is in [security](security.md). `make promises` writes this page from the
markers on the tests. A new file that root reads, a new request, or a new printed text gets a test
with a marker, as `CONTRIBUTING.md` says.
"""
NEVER = """\
# What must never happen

None of this must happen because of us. Each promise has the tests that would notice a breach, most
of them on a real cluster. `make test` runs them, `make test-slow` those of `test_lives_slow.py` and
`test_lives_clusters.py`. The [soak](measurements/soak.md) checks its invariants while everything is
killed, stopped, filled and forged. `make promises` writes this page from markers on the tests.

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
    """What comes of it, or nothing where the section's ``usually`` says it."""
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
            elif mark.key == "Attack":
                outcome = after.text if after is not None and after.key == "Outcome" else ""
                attack = Attack(str(mark.section), mark.text, outcome, comment.test)
                markers.attacks.append(attack)


def _problem(mark: Mark, before: Mark | None, after: Mark | None) -> str | None:
    """Return what is wrong with a marker, if anything."""
    follows = before is not None and before.key == "Attack"
    is_bare = mark.key == "Attack" and (after is None or after.key != "Outcome")
    section = SECTIONS.get(str(mark.section))
    problems = {
        f"{mark.key} is no marker: Promise, Attack (SECTION) and Outcome are": mark.key
        not in {"Promise", "Attack", "Outcome"},
        f"{mark.key} says nothing": not mark.text,
        f"{mark.key} has no section": mark.key != "Attack" and mark.section is not None,
        _no_promise(mark.text): mark.key == "Promise" and mark.text not in CLAUSES,
        f"there is no section {mark.section!r}: write Attack (SECTION), one of"
        f" {', '.join(SECTIONS)}": mark.key == "Attack" and mark.section not in SECTIONS,
        "an Attack without its Outcome below, which its section does not say": is_bare
        and section is not None
        and not section.usually,
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
    """Return docs/attacks.md: tests that try the same are one row."""
    parts = [ATTACKS]
    for key, section in SECTIONS.items():
        tests: dict[tuple[str, str], list[str]] = {}
        for one in markers.attacks:
            if one.section == key:
                named = f"`{one.test.path}::{one.test.name}`"
                tests.setdefault((one.attack, one.outcome), []).append(named)
        rows = [(*tried, ", ".join(named)) for tried, named in tests.items()]
        parts.append(f"\n## {section.heading}\n\n")
        parts.append(f"{section.before}\n\n" if section.before else "")
        usually = textwrap.fill(section.usually[:1].upper() + section.usually[1:], COLUMNS)
        parts.append(f"{usually}\n\n" if section.usually else "")
        parts += [item(*row) for row in rows]
        parts.append(f"\n{section.after}\n" if section.after else "")
    return "".join(parts)


def item(attack: str, outcome: str, tests: str) -> str:
    """Return the line of docs/attacks.md about an attack."""
    return f"- {' '.join(filter(None, (attack, outcome and f'*{outcome}*', tests)))}\n"


def never_page(markers: Markers) -> str:
    """Return docs/never.md."""
    rows = []
    for clause in CLAUSES:
        tests = ", ".join(shown(one.test) for one in markers.promises if one.clause == clause)
        of_soak = [f"`{one.name}`" for one in markers.invariants if clause in one.promises]
        soak = f"; in the soak: {', '.join(of_soak)}" if of_soak else ""
        rows.append(f"- **{clause}**: {tests}{soak}\n")
    return NEVER + "".join(rows)


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
