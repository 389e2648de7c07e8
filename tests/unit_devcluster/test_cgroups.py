"""Control groups: whether there are any, and what is cleared away."""

from __future__ import annotations

from pathlib import Path

from devcluster import cgroups


def test_both_controllers_are_needed(tmp_path: Path) -> None:
    assert "'freezer'" in (cgroups.memory_problem(tmp_path) or "")
    for name in ("freezer", "memory"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tasks").touch()
    assert cgroups.memory_problem(tmp_path) is None
    (tmp_path / "memory" / "tasks").unlink()
    assert "'memory'" in (cgroups.memory_problem(tmp_path) or "")


def test_only_the_empty_groups_of_these_nodes_are_removed(tmp_path: Path) -> None:
    for group in ("slurm_n1/uid_0/job_1", "slurm_n2", "slurm_n3", "slurm_n1x"):
        (tmp_path / "memory" / group).mkdir(parents=True)
    (tmp_path / "memory" / "slurm_n2" / "held").touch()
    cgroups.remove_leftovers(["n1", "n2"], tmp_path)
    left = sorted(item.name for item in (tmp_path / "memory").iterdir())
    assert left == ["slurm_n1x", "slurm_n2", "slurm_n3"]
