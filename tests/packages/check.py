"""``make check-release``: whether a release's files are the releaser's, and of which commit.

It needs gpg, and nothing of what was downloaded is run. With ``--rebuild`` the commit is built
here, and what differs is named, beside the packages of the roots that are other versions here.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from packages import provenance, site, sums

OWN_SURROUNDINGS = (".buildinfo", ".changes")
"""Files that name the host which built them: two builds differ in these."""


NO_LONGER = {
    "REVKEYSIG": "the key was revoked",
    "EXPKEYSIG": "the key has run out: get the releaser's renewed one",
    "EXPSIG": "the signature has run out",
}
"""By the word of gpgv's, what makes a signature worthless although it is right."""


def main() -> int:
    """Check a release, print what it is, and return 1 where something is wrong with it."""
    parser = argparse.ArgumentParser(prog="packages.check", description=__doc__)
    parser.add_argument("release", type=Path, help="the directory with SHA256SUMS")
    parser.add_argument("--key", type=Path, help="the releaser's public key, a file of gpg's")
    parser.add_argument("--rebuild", action="store_true", help="build the commit, and compare")
    options = parser.parse_args()
    release: Path = options.release
    try:
        # What is wrong with one is not what the next one should read.
        wrong = [*signature(release, options.key)]
        wrong = wrong or [*files(release)]
        wrong = wrong or [*stated(release)]
        if options.rebuild and not wrong:
            wrong += rebuilt(release)
    except (OSError, ValueError) as error:
        wrong = [str(error)]
    for line in wrong:
        print(f"wrong: {shown(line)}")
    if wrong:
        return 1
    said = provenance.read(release)
    signed = "signed" if options.key else "signature not checked (name the key by --key)"
    same = ", and built here to the same bytes" if options.rebuild else ""
    print(f"{said.version}: {len(sums.read(release))} files as in {sums.NAME}, {signed}{same}")
    print(f"of commit {said.commit}")
    return 0


def shown(text: str) -> str:
    """Return a text without what moves a terminal's cursor: others may have written it."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def signature(release: Path, key: Path | None) -> Iterator[str]:
    """Check that a key of this file signed the checksums: none else, whatever gpg knows here."""
    if key is None:
        return
    with tempfile.TemporaryDirectory() as home:
        ring = Path(home) / "key.gpg"
        dearmor = ["gpg", "--homedir", home, "--batch", "--quiet", "--yes"]
        made = subprocess.run(
            [*dearmor, "--import-options", "import-export", "--output", str(ring), "--import"],
            stdin=key.open("rb"),
            check=False,
            capture_output=True,
        )
        if made.returncode != 0 or not ring.exists():
            yield f"{key} is no public key of gpg's"
            return
        verify = ["gpgv", "--homedir", home, "--keyring", str(ring), "--status-fd", "1"]
        verify += [str(release / sums.SIGNATURE), str(release / sums.NAME)]
        said = subprocess.run(verify, check=False, capture_output=True, text=True)
        if said.returncode != 0:
            last = said.stderr.strip().splitlines()[-1]
            yield f"{sums.NAME} is not signed by {key}: {last}"
        # To gpgv these are good signatures.
        for line in said.stdout.splitlines():
            if why := NO_LONGER.get(line.removeprefix("[GNUPG:] ").partition(" ")[0]):
                yield f"{sums.NAME} is signed by {key}, but {why}"


def files(release: Path) -> Iterator[str]:
    """Check that the files are those of the checksums: none changed, missing or added."""
    named = sums.read(release)
    there = {str(file.relative_to(release)): file for file in sums.files(release)}
    for name in sorted(named.keys() | there.keys()):
        if name not in there:
            yield f"{name} is missing"
        elif there[name].is_symlink() or not there[name].is_file():
            yield f"{name} is no file: what it leads to can change after this"
        elif name not in named:
            yield f"{name} is not in {sums.NAME}"
        elif sums.digest(there[name]) != named[name]:
            yield f"{name} has changed"


def stated(release: Path) -> Iterator[str]:
    """Check that the statement is about exactly these files."""
    said = provenance.read(release).checksums
    named = {name: value for name, value in sums.read(release).items() if name != provenance.NAME}
    for name in sorted(said.keys() | named.keys()):
        if said.get(name) != named.get(name):
            yield f"{provenance.NAME} and {sums.NAME} do not say the same of {name}"


def rebuilt(release: Path) -> Iterator[str]:
    """Build the release's commit here, and name what differs in it and in what built it."""
    said = provenance.read(release)
    with tempfile.TemporaryDirectory(prefix="io-autotune-release.") as scratch:
        out = Path(scratch) / "packages"
        suites = (f"--suite={suite}" for suite in said.suites)
        try:
            site.build([f"--out={out}", f"--commit={said.commit}", "--anew", *suites])
        except subprocess.CalledProcessError:
            yield f"commit {said.commit} cannot be built here"
            return
        yield from differences(release, out)


def differences(theirs: Path, ours: Path) -> Iterator[str]:
    """Name the files that two builds made otherwise, and then what took part in one alone."""
    left, right = sums.read(theirs), sums.read(ours)
    names = [
        name
        for name in sorted(left.keys() | right.keys())
        if left.get(name) != right.get(name)
        and name != provenance.NAME
        and not name.endswith(OWN_SURROUNDINGS)
    ]
    yield from (f"{name} is built otherwise here" for name in names)
    if names:
        parts = provenance.read(theirs).parts, provenance.read(ours).parts
        yield from (f"took part in theirs alone: {part}" for part in sorted(parts[0] - parts[1]))
        yield from (f"took part in ours alone: {part}" for part in sorted(parts[1] - parts[0]))


if __name__ == "__main__":
    sys.exit(main())
