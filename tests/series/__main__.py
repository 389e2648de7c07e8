"""``make test-series``: the cluster suite on each series of Slurm, on this one machine."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from series import page, processors, roots
from series.functions import LEFT_OUT, functions
from series.suites import SUITES, Cell, Suite, named

TREE = roots.TREE
DIRECTORY = Path("/var/lib/io-autotune-series")
"""Where the roots are kept."""
PAGE = TREE / "docs/measurements/series.md"
KEPT = PAGE.with_suffix(".json")
"""What the page is made of: what each cell gave last."""
STAGED = ("stage/bin", "stage/share", "workloads")
"""What the host has built, all of it: programs in Rust run in every root. C is compiled inside."""
NO_TESTS = 5
"""pytest's exit status when a module has none but slow tests."""
PARTS = ("spank-plugin", "spank-plugin/mpi-in-force", "tests/workloads")
"""Directories whose C is compiled against a root's own headers, warnings being errors."""


def main() -> int:
    """Run the cells of each suite, and return 1 if any test failed."""
    parser = argparse.ArgumentParser(prog="series", description=__doc__)
    parser.add_argument("--suite", action="append", help="only this one; may be given again")
    parser.add_argument("--cell", help="only cells whose name has this in it, such as munge")
    parser.add_argument("--directory", type=Path, default=DIRECTORY, help="where roots are kept")
    parser.add_argument("--clusters", type=int, default=3, help="clusters side by side")
    parser.add_argument("--fresh", action="store_true", help="make roots anew, of today's packages")
    parser.add_argument("--again", action="store_true", help="only what failed in a cell, alone")
    parser.add_argument("--shell", action="store_true", help="a shell in the root instead of tests")
    parser.add_argument("tests", nargs="*", help="as pytest takes them, instead of a cell's own")
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("roots are made and entered by root only: run it as root")
    try:
        suites = [named(name) for name in options.suite] if options.suite else list(SUITES)
    except ValueError as error:
        parser.error(str(error))
    return _run_suites(suites, options)


def _run_suites(suites: Sequence[Suite], options: argparse.Namespace) -> int:
    before = {result.key: result for result in _kept().results}
    failed = []
    ran = set()
    for suite in suites:
        try:
            root = _root(suite, options)
        except ValueError as error:
            failed.append(f"{suite.name}: {error}")
            continue
        if options.shell:
            return _inside(suite, root, ["/bin/bash"], {}, "shell")
        cells = [cell for cell in suite.cells() if (options.cell or "") in cell.name]
        compiled = bool(cells) and _compile(suite, root)
        for cell in cells:
            print(f"== {suite.name}, Slurm {suite.slurm}: {cell.name}", flush=True)
            ran.add((suite.name, cell.name))
            run = _run_again if options.again else _run
            if not (compiled and run(suite, root, cell, options)):
                since = page.since(before.get((suite.name, cell.name)), page.versions(root))
                failed.append(f"{suite.name}: {cell.name}{since}")
    # A few tests are not what a cell gives.
    if not options.tests:
        _write(ran)
    for each in failed:
        print(f"series: failed: {each}", file=sys.stderr)
    return 1 if failed else 0


def _root(suite: Suite, options: argparse.Namespace) -> Path:
    """Return a suite's root, made anew if that is asked.

    Raises:
        ValueError: Debian's suite has gone on to another series of Slurm.

    """
    if options.fresh:
        shutil.rmtree(options.directory / suite.name, ignore_errors=True)
    root = roots.ensure(suite, options.directory)
    slurm = page.versions(root)["Slurm"]
    if not slurm.startswith(f"{suite.slurm}."):
        raise ValueError(
            f"Debian's {suite.name} has Slurm {slurm} now, and tests/series/suites.py says"
            f" {suite.slurm}: mend that, and docs/series.md, then run it"
        )
    return root


def _kept() -> page.Kept:
    return page.load(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else page.Kept()


def _write(ran: set[tuple[str, str]]) -> None:
    """Renew the page from what every cell gave last."""
    pairs = [(suite, cell) for suite in SUITES for cell in suite.cells()]
    found = [page.read(suite, cell, _results(suite, cell)) for suite, cell in pairs]
    results = [each for each in found if each is not None]
    kept = page.renewed(_kept(), results, ran, functions())
    KEPT.write_text(page.dump(kept), encoding="utf-8")
    PAGE.write_text(page.render(kept), encoding="utf-8")


def _results(suite: Suite, cell: Cell) -> Path:
    return _build(suite) / "cells" / cell.slug


def _compile(suite: Suite, root: Path) -> bool:
    """Give a suite's tests what the host has built, and compile anew what is the root's own.

    A root that was made again may have other headers and libraries than what was compiled before,
    and what the host has compiled of these parts is for its own.
    """
    for part in STAGED:
        shutil.copytree(TREE / "build" / part, _build(suite) / part, dirs_exist_ok=True)
    compile_ = " && ".join(f"make --no-print-directory --always-make -C {part}" for part in PARTS)
    return _inside(suite, root, ["/bin/bash", "-euc", compile_], {}, "compile") == 0


def _run(suite: Suite, root: Path, cell: Cell, options: argparse.Namespace) -> bool:
    """Run a cell's tests, and return whether all passed."""
    if not options.tests:
        shutil.rmtree(_results(suite, cell), ignore_errors=True)
        _results(suite, cell).mkdir(parents=True)
        versions = json.dumps(page.versions(root))
        (_results(suite, cell) / page.VERSIONS).write_text(versions, encoding="utf-8")
    tests = options.tests or ["tests/cluster" if cell.whole else "tests/cluster/test_lives.py"]
    if cell.clusters_share:
        side_by_side = [f"--numprocesses={options.clusters}", "--dist=loadfile"]
        return _pytest(suite, root, cell, [*side_by_side, *tests], "all", options)
    # Each module has a host of its own, so to say.
    modules = [
        str(module.relative_to(TREE))
        for test in tests
        for module in (sorted((TREE / test).glob("test_*.py")) or [TREE / test])
    ]
    with ThreadPoolExecutor(options.clusters) as pool:
        results = pool.map(
            lambda module: _pytest(suite, root, cell, [module], Path(module).stem, options), modules
        )
        return all(list(results))


def _run_again(suite: Suite, root: Path, cell: Cell, options: argparse.Namespace) -> bool:
    """Run what failed in a cell once more, a module at a time, and return whether all passed.

    A busy machine is late for tests that wait for nothing longer than a user would.
    """
    found = page.read(suite, cell, _results(suite, cell))
    if found is None or found.versions != page.versions(root):
        print(f"series: {suite.name}, {cell.name} did not run with these packages", file=sys.stderr)
        return False
    modules: dict[str, list[str]] = {}
    for name in found.failures:
        module, _, test = name.partition("::")
        modules.setdefault(module, []).append(f"tests/cluster/{module}.py::{test}")
    # What an earlier time gave stays beside it.
    times = len(list(_results(suite, cell).glob("*.again-*.xml")))
    passed = [
        _pytest(suite, root, cell, tests, f"{module}.again-{times}", options)
        for module, tests in modules.items()
    ]
    return all(passed)


def _pytest(
    suite: Suite,
    root: Path,
    cell: Cell,
    tests: list[str],
    name: str,
    options: argparse.Namespace,
) -> bool:
    results = "chosen" if options.tests else "cells"
    argv = ["python3", "-m", "pytest", "-p", "no:cacheprovider"]
    argv += ["-m", " and ".join(f"not {mark}" for mark in LEFT_OUT)]
    argv += [f"--junitxml=build/{results}/{cell.slug}/{name}.xml", "--quiet", *tests]
    variant = {"IO_AUTOTUNE_TEST_VARIANT": json.dumps(cell.variant)}
    return _inside(suite, root, argv, variant, name) in (0, NO_TESTS)


def _build(suite: Suite) -> Path:
    return TREE / "build/series" / suite.name


def _inside(
    suite: Suite, root: Path, command: list[str], variables: dict[str, str], name: str
) -> int:
    """Run a command inside a root, with the tree and a build directory of the suite's own.

    What it writes elsewhere goes with ``name``, a directory beside the root.
    """
    build = _build(suite)
    build.mkdir(parents=True, exist_ok=True)
    scratch = root.with_name(f"{suite.name}.{name}.{os.getpid()}.scratch")
    processor = processors.lowest()
    argv = ["taskset", "--cpu-list", str(processor)] if processor is not None else []
    argv += ["unshare", "--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child"]
    argv += [sys.executable, "-m", "series.inside", f"--root={root}", f"--scratch={scratch}"]
    argv += [f"--bind={TREE}", f"--bind={build}:{TREE}/build", f"--chdir={TREE}", "--", *command]
    environment = os.environ | {"PYTHONPATH": str(TREE / "tests")} | variables
    try:
        return subprocess.run(argv, env=environment, check=False).returncode
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
