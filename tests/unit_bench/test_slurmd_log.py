"""Slurm 22.05's slurmd at debug2, as it was logged."""

from __future__ import annotations

import pytest
from bench.slurmd_log import Moments, read

LOG = """\
[2026-11-22T01:52:20.165] debug:  Running spank/epilog for jobid [1] uid [995] gid [994]
[2026-11-22T01:52:21.363] debug2: Start processing RPC: REQUEST_LAUNCH_PROLOG
[2026-11-22T01:52:21.366] debug:  Running spank/prolog for jobid [2] uid [995] gid [994]
[2026-11-22T01:52:21.492] Launching batch job 2 for UID 995
[2026-11-22T01:52:21.607] [2.batch] task 0 (23492) started 2026-11-22T01:52:21
[2026-11-22T01:52:21.615] [2.batch] task 0 (23492) exited with exit code 0.
not a line of slurmd's
[2026-11-22T01:52:21.670] debug:  prep/script: _run_spank_job_script: _run_spank_job_script: \
calling /usr/sbin/slurmstepd spank epilog
[2026-11-22T01:52:21.751] debug:  completed epilog for jobid 2
[2026-11-22T01:52:22.000] [3.batch] task 0 (23499) started 2026-11-22T01:52:22
"""


def test_a_jobs_start_and_end_are_read() -> None:
    jobs = read(LOG.splitlines())
    assert jobs[2].start() == pytest.approx(244)
    assert jobs[2].end() == pytest.approx(136)


def test_what_the_log_does_not_tell_is_not_made_up() -> None:
    jobs = read(LOG.splitlines())
    assert jobs[3].start() is None
    assert jobs[3].end() is None
    assert read([]) == {}
    assert Moments(asked=1.0).start() is None
