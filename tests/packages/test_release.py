"""A release as a stranger checks it: signed, whole, and of the commit that it states."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from packages import check, provenance, sums
from packages.rooms import TREE
from packages.tree import Source

SOURCE = Source("a" * 40, "1.2.3", 1_700_000_000)
PACKAGE = "bookworm/io-autotune_1.2.3_amd64.deb"


@pytest.fixture
def release(tmp_path: Path) -> Path:
    """A release of one package."""
    out = tmp_path / "release"
    return remade(out, {PACKAGE: b"a package"})


def remade(out: Path, files: dict[str, bytes], part: str = "gcc@1") -> Path:
    for name, content in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    said = provenance.statement(SOURCE, ["bookworm"], [{"uri": f"pkg:deb/debian/{part}"}], out)
    (out / provenance.NAME).write_text(json.dumps(said), encoding="utf-8")
    sums.write(out)
    return out


@pytest.fixture
def releaser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A key that signs, in a home of gpg's own."""
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    return made_key("releaser@example.org")


def made_key(name: str) -> str:
    command = ["gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", name]
    subprocess.run(command, check=True)
    return name


def public(key: str, file: Path) -> Path:
    command = ["gpg", "--batch", "--yes", "--armor", "--output", str(file), "--export", key]
    subprocess.run(command, check=True)
    return file


def checked(release: Path, *options: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "packages.check", str(release), *options]
    environment = os.environ | {"PYTHONPATH": str(TREE / "tests")}
    said = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert not said.stderr
    return said.returncode, said.stdout


def test_a_signed_release_is_what_it_says(release: Path, releaser: str, tmp_path: Path) -> None:
    sums.sign(release / sums.NAME, releaser)
    key = public(releaser, tmp_path / "key.asc")
    status, said = checked(release, f"--key={key}")
    assert status == 0, said
    assert said == f"1.2.3: 2 files as in SHA256SUMS, signed\nof commit {SOURCE.commit}\n"


def test_sha256sum_and_gpg_alone_say_the_same(release: Path, releaser: str) -> None:
    signature = sums.sign(release / sums.NAME, releaser)

    def right(*command: str) -> bool:
        said = subprocess.run(command, cwd=release, check=False, capture_output=True)
        return said.returncode == 0

    verify = ("gpg", "--verify", str(signature), str(release / sums.NAME))
    whole = ("sha256sum", "--check", "SHA256SUMS")
    assert right(*verify)
    assert right(*whole)
    (release / PACKAGE).write_bytes(b"another")
    assert not right(*whole)
    sums.write(release)
    assert right(*whole)
    assert not right(*verify)


def test_who_changes_the_checksums_too_is_noticed(
    release: Path, releaser: str, tmp_path: Path
) -> None:
    sums.sign(release / sums.NAME, releaser)
    remade(release, {PACKAGE: b"another"})
    status, said = checked(release, f"--key={public(releaser, tmp_path / 'key.asc')}")
    assert status == 1
    assert said.startswith("wrong: SHA256SUMS is not signed by ")


def test_anothers_key_is_not_the_releasers(release: Path, releaser: str, tmp_path: Path) -> None:
    stranger = made_key("stranger@example.org")
    sums.sign(release / sums.NAME, stranger)
    # gpg knows both keys: the one that was named decides.
    assert checked(release, f"--key={public(releaser, tmp_path / 'key.asc')}")[0] == 1
    assert checked(release, f"--key={public(stranger, tmp_path / 'other.asc')}")[0] == 0


def test_a_key_that_was_revoked_or_has_run_out_signs_nothing(
    release: Path, releaser: str, tmp_path: Path
) -> None:
    gpg = ("gpg", "--batch", "--quiet", "--yes")
    checksums = str(release / sums.NAME)
    sign = ("--armor", "--output", f"{checksums}.asc", "--detach-sign", "--local-user")
    once, then = (("--faked-system-time", f"2020010{day}T000000") for day in (1, 2))
    generate = (*once, "--passphrase", "", "--quick-generate-key", "old@example.org")
    subprocess.run([*gpg, *generate, "default", "default", "2021-01-01"], check=True)
    subprocess.run([*gpg, *then, *sign, "old@example.org", checksums], check=True)
    status, said = checked(release, f"--key={public('old@example.org', tmp_path / 'old.asc')}")
    assert (status, "but the key has run out" in said) == (1, True), said

    sums.sign(release / sums.NAME, releaser)
    for certificate in (tmp_path / "gnupg/openpgp-revocs.d").glob("*.rev"):
        text = certificate.read_text(encoding="utf-8").replace("\n:-----", "\n-----")
        subprocess.run([*gpg, "--import"], input=text, text=True, check=True)
    status, said = checked(release, f"--key={public(releaser, tmp_path / 'key.asc')}")
    assert (status, "but the key was revoked" in said) == (1, True), said


def test_what_the_releaser_signed_otherwise_signs_no_release(
    release: Path, releaser: str, tmp_path: Path
) -> None:
    key = public(releaser, tmp_path / "key.asc")
    letter = tmp_path / "letter"
    letter.write_text("a letter\n", encoding="ascii")
    signature = str(release / sums.SIGNATURE)
    for how in ("--clear-sign", "--sign", "--detach-sign"):
        command = ["gpg", "--batch", "--yes", "--armor", "--output", signature, how, str(letter)]
        subprocess.run(command, check=True)
        status, said = checked(release, f"--key={key}")
        assert (status, "is not signed by" in said) == (1, True), said


def test_no_signature_and_no_key_are_named(release: Path, releaser: str, tmp_path: Path) -> None:
    key = public(releaser, tmp_path / "key.asc")
    assert checked(release, f"--key={key}")[0] == 1
    key.write_text("no key", encoding="ascii")
    status, said = checked(release, f"--key={key}")
    assert (status, said) == (1, f"wrong: {key} is no public key of gpg's\n")


def test_a_changed_a_missing_and_an_added_file_are_named(release: Path) -> None:
    (release / PACKAGE).write_bytes(b"another")
    assert checked(release) == (1, f"wrong: {PACKAGE} has changed\n")
    (release / PACKAGE).unlink()
    assert checked(release) == (1, f"wrong: {PACKAGE} is missing\n")
    (release / PACKAGE).write_bytes(b"a package")
    (release / "bookworm/more.deb").write_bytes(b"")
    assert checked(release) == (1, "wrong: bookworm/more.deb is not in SHA256SUMS\n")


def test_whatever_else_lies_there_is_named(release: Path) -> None:
    (release / "bookworm" / sums.NAME).write_text("another's\n", encoding="ascii")
    assert checked(release) == (1, "wrong: bookworm/SHA256SUMS is not in SHA256SUMS\n")
    (release / "bookworm" / sums.NAME).unlink()
    away = (release / PACKAGE).rename(release.parent / "away.deb")
    (release / PACKAGE).symlink_to(away)
    (release / "more").symlink_to("/usr")
    os.mkfifo(release / "pipe")
    status, said = checked(release)
    assert status == 1
    assert [line.split()[1] for line in said.splitlines()] == [PACKAGE, "more", "pipe"]
    assert said.count(" is no file: ") == 3


def test_what_is_named_by_somebody_moves_no_cursor(release: Path) -> None:
    (release / "a\n\x1b[2J1.2.3: signed\udcff").write_bytes(b"")
    status, said = checked(release)
    assert status == 1
    assert said == "wrong: a\\n\\x1b[2J1.2.3: signed\\udcff is not in SHA256SUMS\n"


@pytest.mark.parametrize("name", ["../away.deb", "/etc/passwd", f"./{PACKAGE}", f"*{PACKAGE}"])
def test_a_file_that_is_elsewhere_is_missing(release: Path, name: str) -> None:
    (release / "../away.deb").write_bytes(b"a package")
    with (release / sums.NAME).open("a", encoding="ascii") as added:
        added.write(f"{'0' * 64}  {name}\n")
    assert checked(release) == (1, f"wrong: {name} is missing\n")


def test_a_statement_about_other_files_is_named(release: Path) -> None:
    (release / PACKAGE).write_bytes(b"another")
    sums.write(release)
    status, said = checked(release)
    assert status == 1
    assert said == f"wrong: provenance.json and SHA256SUMS do not say the same of {PACKAGE}\n"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"_type": 1, "predicateType": 2}', "[" * 1_000_000]
)
def test_what_is_no_statement_is_named(release: Path, text: str) -> None:
    (release / provenance.NAME).write_text(text, encoding="utf-8")
    sums.write(release)
    status, said = checked(release)
    assert status == 1
    assert said.startswith("wrong: provenance.json is no statement of SLSA's provenance"), said


@pytest.mark.parametrize("commit", ["--output=/tmp/x", "main", f"{'a' * 40}\nsigned"])
def test_a_commit_that_is_none_is_given_to_nobody(release: Path, commit: str) -> None:
    text = (release / provenance.NAME).read_text(encoding="utf-8")
    (release / provenance.NAME).write_text(text.replace("a" * 40, json.dumps(commit)[1:-1]))
    sums.write(release)
    status, said = checked(release)
    assert status == 1
    assert said == f"wrong: provenance.json states no commit and version: {commit!r}, '1.2.3'\n"


def test_a_file_of_checksums_that_is_none_is_named(release: Path) -> None:
    (release / sums.NAME).write_text("0  x\n", encoding="ascii")
    status, said = checked(release)
    assert status == 1
    assert "a line that sha256sum did not write" in said
    (release / sums.NAME).unlink()
    assert checked(release)[0] == 1


def test_two_builds_that_differ_say_in_what_and_by_what(release: Path, tmp_path: Path) -> None:
    same = remade(tmp_path / "same", {PACKAGE: b"a package", "bookworm/a.buildinfo": b"a host"})
    assert list(check.differences(release, same)) == []
    other = remade(tmp_path / "other", {PACKAGE: b"another"}, "gcc@2")
    assert list(check.differences(release, other)) == [
        f"{PACKAGE} is built otherwise here",
        'took part in theirs alone: {"uri": "pkg:deb/debian/gcc@1"}',
        'took part in ours alone: {"uri": "pkg:deb/debian/gcc@2"}',
    ]
