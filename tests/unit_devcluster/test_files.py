"""Writing files, copying the stage, sharing the host."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from devcluster import files, registry, stage
from devcluster.errors import ClusterError
from devcluster.paths import Paths

UID, GID = os.getuid(), os.getgid()


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    made = Paths(tmp_path / "root")
    for directory in (made.bin, made.slurm_lib, made.accelerators):
        directory.mkdir(parents=True)
    return made


def test_write_replaces_the_file_and_keeps_the_old_one_for_its_users(tmp_path: Path) -> None:
    path = tmp_path / "program"
    assert files.write(path, "old", 0o644, UID, GID)
    with path.open(encoding="utf-8") as in_use:
        assert files.write(path, "new", 0o755, UID, GID)
        assert in_use.read() == "old"
    assert path.read_text(encoding="utf-8") == "new"
    assert path.stat().st_mode & 0o777 == 0o755
    assert [item.name for item in tmp_path.iterdir()] == ["program"]


def test_write_leaves_the_same_content_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    files.write(path, "text", 0o600, UID, GID)
    before = path.stat().st_ino
    assert not files.write(path, b"text", 0o640, UID, GID)
    assert path.stat().st_ino == before
    assert path.stat().st_mode & 0o777 == 0o640


def test_write_does_not_follow_links(tmp_path: Path) -> None:
    target = write(tmp_path / "target", "theirs")
    link = tmp_path / "link"
    link.symlink_to(target)
    assert files.write(link, "ours", 0o644, UID, GID)
    assert not link.is_symlink()
    assert target.read_text(encoding="utf-8") == "theirs"


def test_digest_of_a_directory_sees_names_and_content(tmp_path: Path) -> None:
    digests = {files.digest_of(tmp_path / "missing"), files.digest_of(tmp_path)}
    item = write(tmp_path / "a", "1")
    digests.add(files.digest_of(tmp_path))
    write(item, "2")
    digests.add(files.digest_of(tmp_path))
    item.rename(tmp_path / "b")
    digests.add(files.digest_of(tmp_path))
    assert len(digests) == 5


def test_stage_goes_to_its_places(tmp_path: Path, paths: Paths) -> None:
    source = tmp_path / "build"
    write(source / "stage" / "bin" / "io-autotuned", "service")
    write(source / "workloads" / "strided", "workload")
    write(source / "stage" / "lib" / "slurm" / "io_autotune.so", "plugin")
    write(source / "stage" / "share" / "accelerators.d" / "romio.toml", "romio")
    installed, changed = stage.install(source, paths, {})
    assert changed == 4
    assert (paths.bin / "strided").read_text(encoding="utf-8") == "workload"
    assert (paths.bin / "io-autotuned").stat().st_mode & 0o777 == 0o755
    assert (paths.accelerators / "romio.toml").stat().st_mode & 0o777 == 0o644
    assert paths.plugin.exists()
    assert stage.install(source, paths, installed) == (installed, 0)


def test_a_cluster_s_program_is_the_build_s_until_it_is_replaced(
    tmp_path: Path, paths: Paths
) -> None:
    source = write(tmp_path / "build" / "stage" / "bin" / "io-autotuned", "service")
    source.chmod(0o755)
    stage.install(tmp_path / "build", paths, {})
    installed = paths.bin / "io-autotuned"
    assert installed.samefile(source) == (os.geteuid() == 0)
    assert files.write(installed, "another", mode=0o755)
    assert source.read_text(encoding="utf-8") == "service"


def test_stage_drops_only_what_it_brought(tmp_path: Path, paths: Paths) -> None:
    source = tmp_path / "build"
    old = write(source / "stage" / "bin" / "old", "old")
    installed, _ = stage.install(source, paths, {})
    mine = write(paths.bin / "mine", "mine")
    old.unlink()
    assert stage.install(source, paths, installed) == ({}, 1)
    assert mine.exists()
    assert not (paths.bin / "old").exists()


def test_stage_refuses_two_files_of_one_name(tmp_path: Path, paths: Paths) -> None:
    source = tmp_path / "build"
    write(source / "stage" / "bin" / "same", "1")
    write(source / "workloads" / "same", "2")
    with pytest.raises(ClusterError, match="both become"):
        stage.install(source, paths, {})


def test_registry_forgets_roots_that_are_gone(tmp_path: Path) -> None:
    path, lock = tmp_path / "registry.json", tmp_path / "lock"
    kept, gone = tmp_path / "kept", tmp_path / "gone"
    write(Paths(kept).record, "{}")
    with registry.opened(path, lock) as shared:
        shared.roots.update({kept, gone})
        shared.users.add("io-alice")
    with registry.opened(path, lock) as shared:
        assert shared.roots == {kept}
        assert shared.users == {"io-alice"}
        shared.roots.clear()
        shared.users.clear()
    assert not path.exists()
