"""A study that has nothing to win says so and stops: no I/O, or none by the accelerator."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from clusters import STUDY_SETTINGS, cluster_of_its_own
from harness import Site, asked, roles

LITTLE_IO = (
    "stop.little_io=0.05",
    "stop.unread_runs=2",
)
WRITING = "dd if=/dev/zero of=$HOME/$SLURM_JOB_ID.data bs=1M count=40 status=none"


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up a cluster whose studies end where I/O cannot matter."""
    settings = (*STUDY_SETTINGS, *LITTLE_IO)
    with cluster_of_its_own(request, "little io", study_settings=settings) as site:
        site.introduce_nodes()
        yield site


def test_what_nothing_reads_is_noticed_by_the_file_and_given_no_more(site: Site) -> None:
    app = "little-io-no-mpi"
    runs = [site.counted_run(WRITING, asked(app)) for _ in range(3)]
    assert roles(runs)[:2] == ["baseline", "baseline"]
    assert runs[2]["role"] not in {"design", "search"}, "it explores what nothing reads"
    assert all(run["applied"] == {"kind": "default"} for run in runs), "empty files are none"
    given = [run["measures"].get("delivered_files") for run in runs]
    assert given == [1, 1, None], "once it is known nothing is given"


def test_a_job_that_reads_what_it_is_given_is_tuned_as_ever(site: Site) -> None:
    app = "little-io-reads"
    reading = 'if [ -n "${ROMIO_HINTS:-}" ]; then cat "$ROMIO_HINTS" > /dev/null; fi'
    runs = [site.counted_run(f"{WRITING}; {reading}", asked(app)) for _ in range(3)]
    assert roles(runs)[:2] == ["baseline", "baseline"]
    assert runs[2]["role"] in {"design", "search"}, runs[2]["reason"]
    assert all(run["measures"]["delivered_files_read"] == 1 for run in runs), runs
