"""What docs/attacks.md and docs/security.md name as tests is there, and no attack is left out."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "attacks.md"
MODEL = ROOT / "docs" / "security.md"
NAMED = re.compile(r"`([\w./-]+\.(?:rs|py|c))` `(\w+)`")


def named(page: Path = PAGE) -> set[tuple[str, str]]:
    """Return the tests that a page names: file and function."""
    return set(NAMED.findall(page.read_text(encoding="utf-8")))


def is_there(path: str, name: str) -> bool:
    """Say whether a file defines a function of this name."""
    file = ROOT / path
    defined = re.compile(rf"^[^/#*\n]*\b(?:fn|def|void|int) {name}\(", re.MULTILINE)
    return file.is_file() and bool(defined.search(file.read_text(encoding="utf-8")))


def test_each_test_that_is_named_is_there() -> None:
    assert len(named()) > 40
    missing = sorted(one for one in named() if not is_there(*one))
    assert not missing, f"docs/attacks.md names tests that are not there: {missing}"
    assert not is_there("tests/cluster/test_attacks.py", "test_of_nothing")


def test_each_attacker_of_the_threat_model_is_tried() -> None:
    text = MODEL.read_text(encoding="utf-8")
    _, table = text.split("## Who could attack, from where\n")
    rows = [row for row in table.split("\n## ")[0].splitlines() if row.startswith("| ")][2:]
    bare = [row for row in rows if not NAMED.search(row)]
    assert rows
    assert not bare, f"attackers without a test: {bare}"
    missing = sorted(one for one in named(MODEL) if not is_there(*one))
    assert not missing, f"docs/security.md names tests that are not there: {missing}"


def test_each_attack_line_has_a_test() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and "---" not in line]
    bare = [line for line in rows if not NAMED.search(line) and not line.endswith("| test |")]
    assert not bare, f"attacks without a test: {bare}"


def test_each_fuzz_target_and_each_attack_is_named() -> None:
    known = named()
    for path in (ROOT / "tuner-service").rglob("*.rs"):
        for target in re.findall(r"fn (fuzz_\w+)\(\)", path.read_text(encoding="utf-8")):
            if "/fuzzing/" not in str(path):
                assert (str(path.relative_to(ROOT)), target) in known
    for path in (ROOT / "spank-plugin" / "fuzz").glob("fuzz_*.c"):
        assert (str(path.relative_to(ROOT)), "LLVMFuzzerTestOneInput") in known
    for attacks, keyword in (
        ("tests/cluster/test_attacks.py", "def test_"),
        ("tuner-service/node/tests/attacks.rs", "#[test]\nfn "),
    ):
        text = (ROOT / attacks).read_text(encoding="utf-8")
        tests = re.findall(rf"{re.escape(keyword)}(\w+)\(", text)
        prefix = "test_" if keyword.startswith("def") else ""
        assert tests
        assert {(attacks, prefix + name) for name in tests} <= known
