"""``make packages``: what a site installs, into build/packages."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from packages import debs, licences, programs, provenance, rpms, sums, tree
from packages.rooms import DIRECTORY, TREE
from packages.suites import SUITES, named

OUT = TREE / "build/packages"
EVERY = [*(suite.name for suite in SUITES), rpms.NAME]


def main() -> int:
    """Build the packages, and return 1 where they cannot be."""
    parser = argparse.ArgumentParser(prog="packages", description=__doc__)
    parser.add_argument(
        "--suite", action="append", help=f"only this one, or {rpms.NAME}; may be given again"
    )
    parser.add_argument("--out", type=Path, default=OUT, help="gets a directory for each suite")
    parser.add_argument("--anew", action="store_true", help="compile, whatever is kept")
    parser.add_argument("--commit", help="of an older commit than the tree as it is")
    parser.add_argument("--key", help="gpg's secret key that signs the checksums")
    options = parser.parse_args()
    if os.geteuid() != 0:
        parser.error("clean roots are made and entered by root only: run it as root")
    try:
        source = tree.at(options.commit) if options.commit else tree.current()
        build(source, options.suite or EVERY, options.out, options.anew)
        written = sums.write(options.out)
        if options.key:
            sums.sign(written, options.key)
        else:
            print("packages: SHA256SUMS is not signed: name a key of gpg's, PACKAGES_KEY=...")
    except (ValueError, subprocess.CalledProcessError) as error:
        print(f"packages: {error}", file=sys.stderr)
        return 1
    return 0


def build(source: tree.Source, names: list[str], out: Path, anew: bool = False) -> None:
    """Build the packages of a tree for suites, each named.

    Raises:
        ValueError: there is no such suite, a program needs a later C library than EL's, or a
            component names no licence.
        subprocess.CalledProcessError: a part of the build failed.

    """
    suites = [named(name) for name in names if name != rpms.NAME]
    print(f"packages: {source.version}", flush=True)
    work = DIRECTORY / f"work.{os.getpid()}"
    try:
        written = work / "tree"
        source.write(written)
        compiled = programs.built(source, written, anew)
        # What an earlier build left there is of another commit, or of suites that nobody asked for.
        for name in EVERY:
            shutil.rmtree(out / name, ignore_errors=True)
        notices = out / "licences"
        licences.write(source, written, notices)
        for suite in suites:
            print(f"packages: {suite.name}", flush=True)
            debs.build(source, suite, compiled, notices, work / suite.name, out / suite.name)
        if rpms.NAME in names:
            print(f"packages: {rpms.NAME}", flush=True)
            rpms.build(source, compiled, notices, work / rpms.NAME, out / rpms.NAME)
        provenance.write(source, written, names, out)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
