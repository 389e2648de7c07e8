"""``make test-series``: the cluster suite on each series of Slurm, on this one machine."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from series import page, roots
from series.suites import SUITES, Cell, Suite, named

TREE = roots.TREE
DIRECTORY = Path("/var/lib/io-autotune-series")
"""Where the roots are kept."""
PAGE = TREE / "docs/measurements/series.md"
STAGED = ("stage/bin", "stage/share", "workloads/lives", "workloads/storm")
"""The programs in Rust: built on the host, run in every root. All else is compiled inside."""
PARTS = ("spank-plugin", "mpi-in-force", "tests/workloads")
"""Directories whose C is compiled against a root's own headers, warnings being errors."""


def main() -> int:
    """Run the cells of each suite, and return 1 if any test failed."""
    parser = argparse.ArgumentParser(prog="series", description=__doc__)
    parser.add_argument("--suite", action="append", help="only this one; may be given again")
    parser.add_argument("--cell", help="only cells whose name has this in it, such as munge")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="where roots are kept")
    parser.add_argument("--clusters", type=int, default=3, help="clusters side by side")
    parser.add_argument("--shell", action="store_true", help="a shell in the root instead of tests")
    parser.add_argument("tests", nargs="*", help="as pytest takes them, instead of a cell's own")
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("roots are made and entered by root only: run it as root")
    try:
        suites = [named(name) for name in options.suite] if options.suite else list(SUITES)
    except ValueError as error:
        parser.error(str(error))
    failed = []
    for suite in suites:
        root = roots.ensure(suite, options.directory)
        if options.shell:
            return _inside(suite, root, ["/bin/bash"], {})
        for cell in suite.cells():
            if options.cell is not None and options.cell not in cell.name:
                continue
            print(f"== {suite.name}, Slurm {suite.slurm}: {cell.name}", flush=True)
            variant = {"IO_AUTOTUNE_TEST_VARIANT": json.dumps(cell.variant)}
            if _inside(suite, root, _tests(cell, options), variant) != 0:
                failed.append(f"{suite.name}: {cell.name}")
    _write(options.directory)
    for each in failed:
        print(f"series: failed: {each}", file=sys.stderr)
    return 1 if failed else 0


def _write(directory: Path) -> None:
    """Renew the page from what every cell gave last."""
    pairs = [(suite, cell) for suite in SUITES for cell in suite.cells()]
    found = [page.read(suite, cell, _result(suite, cell)) for suite, cell in pairs]
    known = {
        suite.name: page.versions(directory / suite.name)
        for suite in SUITES
        if (directory / suite.name).exists()
    }
    text = page.render([each for each in found if each is not None], known)
    PAGE.write_text(text, encoding="utf-8")


def _result(suite: Suite, cell: Cell) -> Path:
    return TREE / "build/series" / suite.name / _file(cell)


def _file(cell: Cell) -> str:
    return f"cells/{re.sub('[^A-Za-z0-9]+', '-', cell.name)}.xml"


def _tests(cell: Cell, options: argparse.Namespace) -> list[str]:
    """Return the command that compiles what is the series', and runs a cell's tests."""
    compile_ = " && ".join(f"make --no-print-directory -C {part}" for part in PARTS)
    pytest = ["python3", "-m", "pytest", "-p", "no:cacheprovider", "-m", "not slow and not array"]
    if not options.tests:
        pytest.append(f"--junitxml=build/{_file(cell)}")
    if cell.clusters_share:
        pytest += [f"--numprocesses={options.clusters}", "--dist=loadfile"]
    tests = options.tests or ["tests/cluster" if cell.whole else "tests/cluster/test_lives.py"]
    return ["/bin/bash", "-euc", f"{compile_} && exec {shlex.join([*pytest, *tests])}"]


def _inside(suite: Suite, root: Path, command: list[str], variables: dict[str, str]) -> int:
    """Run a command inside a root, with the tree and a build directory of the suite's own."""
    build = TREE / "build/series" / suite.name
    for part in STAGED:
        source, target = TREE / "build" / part, build / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)
    scratch = root.with_name(f"{suite.name}.scratch")
    argv = ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child"]
    argv += [sys.executable, "-m", "series.inside", f"--root={root}", f"--scratch={scratch}"]
    argv += [f"--bind={TREE}", f"--bind={build}:{TREE}/build", f"--chdir={TREE}", "--", *command]
    environment = os.environ | {"PYTHONPATH": str(TREE / "tests")} | variables
    try:
        return subprocess.run(argv, env=environment, check=False).returncode
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
