"""Tests say what they try; docs/attacks.md and docs/never.md are what they say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from promises import (
    CLAUSES,
    SECTIONS,
    Markers,
    add,
    add_invariants,
    attacks_page,
    files,
    pages,
    read,
)
from soak.invariants import INVARIANTS

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "docs" / "security.md"
NAMED = re.compile(r"`([\w./-]+\.(?:rs|py|c))` `(\w+)`")


@pytest.fixture(scope="module")
def markers() -> Markers:
    return read()


@pytest.fixture(scope="module")
def tried(markers: Markers) -> set[tuple[str, str]]:
    """Return the tests that have an Attack: file and function."""
    return {(one.test.path, one.test.name) for one in markers.attacks}


def of(path: str, text: str) -> Markers:
    found = Markers()
    add(found, path, text)
    return found


def test_no_marker_is_malformed(markers: Markers) -> None:
    assert markers.problems == []


def test_the_pages_are_what_the_markers_say(markers: Markers) -> None:
    for page, text in pages(markers).items():
        written = (ROOT / page).read_text(encoding="utf-8")
        assert written == text, f"`make promises` renews {page}"


def test_each_promise_has_a_test_on_the_real_cluster(markers: Markers) -> None:
    on_cluster = {
        one.clause for one in markers.promises if one.test.path.startswith("tests/cluster/")
    }
    assert on_cluster == set(CLAUSES)


def test_each_invariant_of_the_soak_keeps_a_promise(markers: Markers) -> None:
    assert {one.name: one.promises for one in markers.invariants} == {
        one.name: one.promises for one in INVARIANTS
    }
    assert all(one.promises and set(one.promises) <= set(CLAUSES) for one in INVARIANTS)


def test_each_section_has_attacks(markers: Markers) -> None:
    assert {one.section for one in markers.attacks} == set(SECTIONS)


def test_each_fuzz_target_and_each_test_of_attacks_says_what_it_tries(
    markers: Markers, tried: set[tuple[str, str]]
) -> None:
    parsers = {
        (one.test.path, one.test.name) for one in markers.attacks if one.section == "parsers"
    }
    targets, attacks = set(), set()
    for path in files(ROOT):
        file, text = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        if path.suffix == ".rs" and "/fuzzing/" not in file:
            targets |= {(file, name) for name in re.findall(r"fn (fuzz_\w+)\(\)", text)}
        elif path.match("spank-plugin/fuzz/fuzz_*.c"):
            targets.add((file, "LLVMFuzzerTestOneInput"))
        elif path.match("tests/cluster/test_attacks*.py"):
            attacks |= {(file, name) for name in re.findall(r"^def (test_\w+)\(", text, re.M)}
    file = "tuner-service/node/tests/attacks.rs"
    text = (ROOT / file).read_text(encoding="utf-8")
    attacks |= {(file, name) for name in re.findall(r"#\[test\]\nfn (\w+)\(", text)}
    assert len(targets) > 30
    # Most of them moved with what they try to the service's own tests.
    assert len(attacks) > 25
    assert len(tried) > 300
    assert sorted(targets - parsers) == [], "a fuzz target without its marker"
    assert sorted(attacks - tried) == [], "a test of attacks without its marker"


def test_each_attacker_of_the_threat_model_is_tried(tried: set[tuple[str, str]]) -> None:
    text = MODEL.read_text(encoding="utf-8")
    _, table = text.split("## Who could attack, from where\n")
    rows = [row for row in table.split("\n## ")[0].splitlines() if row.startswith("| ")][2:]
    bare = [row for row in rows if not NAMED.search(row)]
    assert rows
    assert not bare, f"attackers without a test: {bare}"
    missing = sorted(set(NAMED.findall(text)) - tried)
    assert not missing, f"docs/security.md names what is no test with an Attack: {missing}"


RUST = """
/// What it is about.
///
/// Promise: a job fails
/// Attack (files): A file is
///   a link.
/// Outcome: It is
/// not followed.
///
/// And this is nothing of it.
#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::print_stdout,
    reason = "a test"
)]
async fn a_link_is_not_followed() {}
"""
C = """
// What it is about.
//
// Promise: a job fails
// Attack (files): A file is
//   a link.
// Outcome: It is
// not followed.
//
// And this is nothing of it.
static void a_link_is_not_followed(void **state)
{
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(a_link_is_not_followed),
    };
}
"""
PYTHON = '''
@pytest.mark.slow
def test_a_link_is_not_followed() -> None:
    """What it is about.

    Promise: a job fails
    Attack (files): A file is
      a link.
    Outcome: It is
    not followed.

    And this is nothing of it.
    """
'''
LANGUAGES = {"a.rs": RUST, "a.c": C, "test_a.py": PYTHON}


@pytest.mark.parametrize("path", LANGUAGES)
def test_a_marker_is_the_same_in_each_language(path: str) -> None:
    found = of(path, LANGUAGES[path])
    assert found.problems == []
    (attack,) = found.attacks
    assert (attack.section, attack.attack) == ("files", "A file is a link.")
    assert attack.outcome == "It is not followed."
    (promise,) = found.promises
    assert promise.clause == "a job fails"
    assert promise.test == attack.test
    assert attack.test.path == path
    assert attack.test.name.removeprefix("test_") == "a_link_is_not_followed"


@pytest.mark.parametrize("path", LANGUAGES)
def test_an_attack_may_leave_its_outcome_to_its_section(path: str) -> None:
    bare = re.sub(r".*Outcome: It is\n.*not followed\.\n", "", LANGUAGES[path])
    found = of(path, bare)
    assert found.problems == []
    (attack,) = found.attacks
    assert (attack.attack, attack.outcome) == ("A file is a link.", "")
    assert len(found.promises) == 1
    (problem,) = of(path, bare.replace("(files)", "(second-round)")).problems
    assert "an Attack without its Outcome below" in problem


def test_tests_that_try_the_same_are_one_row_in_its_section() -> None:
    found = Markers()
    for path, text in LANGUAGES.items():
        add(found, path, text)
    (row,) = [row for row in attacks_page(found).splitlines() if "A file is a link." in row]
    assert "*It is not followed.*" in row
    assert all(f"`{path}::" in row for path in LANGUAGES)
    assert all(not one.usually or one.usually.endswith(".") for one in SECTIONS.values())


@pytest.mark.parametrize("path", LANGUAGES)
@pytest.mark.parametrize(
    ("good", "bad", "line", "said"),
    [
        ("Attack (files)", "Attack (moon)", 1, "no section 'moon'"),
        ("Attack (files)", "Attack", 1, "no section None"),
        ("Attack (files)", "Attacks (files)", 1, "Attacks is no marker"),
        ("Promise: a job fails", "promise: a job fails", 0, "promise is no marker"),
        ("Promise: a job fails", "Promise: a job sleeps", 0, "no promise 'a job sleeps'"),
        ("Promise: a job fails", "Promise:", 0, "Promise says nothing"),
        ("Promise: a job fails", "Outcome: Nothing.", 0, "an Outcome without its Attack"),
        ("Outcome: It is", "Outcome (files): It is", 3, "Outcome has no section"),
    ],
)
def test_a_malformed_marker_is_refused_with_its_line(
    path: str, good: str, bad: str, line: int, said: str
) -> None:
    text = LANGUAGES[path]
    first = text[: text.index("Promise:")].count("\n") + 1
    problem = of(path, text.replace(good, bad)).problems[0]
    assert problem.startswith(f"{path}:{first + line}: "), problem
    assert said in problem


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        ("a.rs", RUST.replace("#[tokio::test(flavor", "#[tokio::main(flavor"), 4),
        ("a.rs", RUST.replace("async fn a_link", "struct Link; fn a_link"), 4),
        ("a.rs", RUST.replace("#[tokio", "\n#[tokio"), 4),
        ("a.rs", "// Attack (files): A file is a link.\n#[test]\nfn a_link() {}\n", 1),
        ("a.rs", "//! Promise: a job fails\n", 1),
        ("a.rs", "#[test]\nfn a_link() {\n    /// Promise: a job fails\n    let it = 1;\n}\n", 3),
        ("a.c", C.replace("CASE(a_link", "CASE(another"), 4),
        ("a.c", C.replace("static void", "\nstatic void"), 4),
        ("a.c", "/* Promise: a job fails */\n", 1),
        ("test_a.py", PYTHON.replace("def test_", "def "), 6),
        ("helper.py", PYTHON, 6),
        ("test_a.py", '"""Promise: a job fails"""\n', 1),
        ("test_a.py", "# Promise: a job fails\n", 1),
        ("conftest.py", '@pytest.fixture\ndef a() -> None:\n    """Promise: a job fails"""\n', 3),
    ],
)
def test_a_marker_on_what_is_no_test_is_refused(path: str, text: str, line: int) -> None:
    found = of(path, text)
    assert found.promises == []
    assert found.attacks == []
    (problem,) = found.problems
    assert problem.startswith(f"{path}:{line}: a marker stands directly on a test"), problem


def test_a_fixture_of_all_tests_may_keep_a_promise() -> None:
    text = '@pytest.fixture(autouse=True)\ndef _a() -> None:\n    """Promise: a node drains"""\n'
    found = of("tests/cluster/conftest.py", text)
    assert [one.test.is_fixture for one in found.promises] == [True]


def test_an_invariant_without_a_promise_is_refused() -> None:
    found = Markers()
    text = 'A = [\n    Invariant("b", "c", d),\n    Invariant("e", "f", g, promises=("h",)),\n]\n'
    add_invariants(found, "invariants.py", text)
    bare, wrong = found.problems
    assert bare == "invariants.py:2: the invariant 'b' has no promises"
    assert wrong.startswith("invariants.py:3: the invariant 'e': there is no promise 'h'")
