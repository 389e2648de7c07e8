"""docs/optimize.md and its reference are true: what they show is executed, and tables are whole."""

import doctest
import os
import re
import subprocess
from pathlib import Path

import pytest
from optuna.testing import pytest_samplers

PAGE = Path(__file__).resolve().parents[3] / "docs" / "optimize.md"
TEXT = PAGE.read_text(encoding="utf-8")
REFERENCE = PAGE.with_name("optimize-reference.md").read_text(encoding="utf-8")
OF_OPTUNA = Path(__file__).with_name("test_optuna.py").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_what_it_does_in_python_is_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    parser = doctest.DocTestParser()
    test = parser.get_doctest("".join(blocks("python")), {}, "page", str(PAGE), 0)
    results = doctest.DocTestRunner(optionflags=doctest.REPORT_ONLY_FIRST_FAILURE).run(test)
    assert results.attempted > 20
    assert results.failed == 0


def words(text: str) -> str:
    """Return the first words of a result's lines."""
    return re.sub(r"^(study \S+ in \S+|\w+) .*", r"\1", text, flags=re.MULTILINE)


def test_its_command_prints_what_it_shows_and_goes_on(tmp_path: Path) -> None:
    # Elsewhere than where this runs data may be small.
    data, command = (block.replace("300000", "3000") for block in blocks("sh"))
    script = f"set -e\n{data}\n{command}"

    def run(text: str) -> str:
        bash = ["bash", "-c", text]
        done = subprocess.run(bash, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    shown = next(block for block in blocks("text") if block.startswith("study "))
    first = run(script)
    assert words(first).splitlines()[0] == words(shown).splitlines()[0]
    assert {"default", "chosen", "gain", "use"} <= set(words(first).split())
    assert run(command) == first
    more = run(command.replace("--runs 40", "--runs 44"))
    assert "44 of 44 runs" in more or "default is the best" in more or "none" in more


def test_its_table_says_which_of_optunas_tests_hold() -> None:
    rows = dict(re.findall(r"^\| `(\w+TestCase)` \| (.*?) \|$", REFERENCE, re.MULTILINE))
    shipped = {name for name in vars(pytest_samplers) if re.fullmatch(r"[A-Z]\w+TestCase", name)}
    assert set(rows) == shipped
    run = set(re.findall(r"^class \w+\(pytest_samplers\.(\w+)\)", OF_OPTUNA, re.MULTILINE))
    assert {name for name, said in rows.items() if said == "holds"} == run


def test_each_option_of_the_command_is_on_the_page() -> None:
    asked = ["io-autotune", "optimize", "--help"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True, env=os.environ).stdout
    options = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", said, re.MULTILINE))
    general = {"--help", "--version"}
    assert {option for option in options - general if option not in REFERENCE} == set()
