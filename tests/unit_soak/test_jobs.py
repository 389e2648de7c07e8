"""What the soak's jobs print is what is expected of them, and nothing else is taken for it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from soak.jobs import OWN_HINTS, WEIGHTS, Submission, generated, understood


def one(kind: str) -> Submission:
    return Submission("soak-00001", kind, "io-alice", "soak-1", pause=0.01)


def printed(submission: Submission, env: dict[str, str], tmp_path: Path) -> tuple[str, int]:
    srun = tmp_path / "srun"
    srun.write_text('#!/bin/sh\n"$@"\n"$@"\n', encoding="utf-8")
    srun.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", **submission.env(), **env}
    done = subprocess.run(
        ["/bin/bash", "-c", submission.body()],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert not done.stderr
    return done.stdout, done.returncode


@pytest.mark.parametrize("kind", list(WEIGHTS))
def test_each_kind_of_job_prints_what_is_expected(kind: str, tmp_path: Path) -> None:
    text, code = printed(one(kind), {}, tmp_path)
    assert code == one(kind).exit_code
    found = understood(one(kind), text)
    assert found is not None, text
    assert found.seconds >= 0
    if kind == "own hints":
        assert found.given == OWN_HINTS


def test_the_hints_are_told(tmp_path: Path) -> None:
    hints = tmp_path / "hints"
    hints.write_text("cb_nodes 2\nromio_cb_write enable\n", encoding="utf-8")
    text, _ = printed(one("tuned"), {"ROMIO_HINTS": str(hints)}, tmp_path)
    found = understood(one("tuned"), text)
    assert found is not None
    assert found.given == "cb_nodes 2 romio_cb_write enable"


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "slurmstepd: error: something\n" + text,
        lambda text: text + "more\n",
        lambda text: text.replace("soak-00001", "soak-00002"),
        lambda text: text[: text.index("end")],
        lambda _text: "",
    ],
)
def test_another_output_is_not_taken_for_it(change: object, tmp_path: Path) -> None:
    text, _ = printed(one("tuned"), {}, tmp_path)
    assert callable(change)
    assert understood(one("tuned"), change(text)) is None


def test_a_seed_gives_the_same_jobs_again() -> None:
    first = generated(1, 300, ["a", "b"])
    assert first == generated(1, 300, ["a", "b"])
    assert sum(job.tasks for job in first) >= 300
    assert {job.kind for job in first} == set(WEIGHTS)
    assert len({job.name for job in first}) == len(first)
