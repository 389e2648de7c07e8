"""Every kind of job, every kind of end, on clusters of another make-up, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from clusters import cluster_of_its_own
from devcluster import Variant
from devcluster.cgroups import memory_problem
from harness import Site
from lives.table import OTHER_CLUSTERS, Entry
from lives.together import Lives

pytestmark = pytest.mark.slow

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "no Alloc": {"prolog_alloc": False},
    "four nodes": {"nodes": 4},
    "four nodes, no Alloc": {"nodes": 4, "prolog_alloc": False},
    "jobcomp": {"variant": Variant(jobcomp=True)},
    "sacct": {"variant": Variant(accounting=True)},
    "none": {"variant": Variant(sources=())},
    "memory": {"variant": Variant(memory=True)},
    "preemption": {"variant": Variant(preemption=True)},
}
"""How each differs from the cluster that most tests share."""


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    """Bring up the cluster of this make-up."""
    make_up: str = request.param
    if make_up == "memory" and (problem := memory_problem()) is not None:
        pytest.skip(problem)
    with cluster_of_its_own(request, make_up, **OPTIONS[make_up]) as site:
        yield site


COMBINATIONS = [
    pytest.param(make_up, entry, id=f"{make_up}: {entry.name}")
    for make_up, entries in OTHER_CLUSTERS.items()
    for entry in entries
]


@pytest.mark.parametrize(("site", "entry"), COMBINATIONS, indirect=["site"], scope="module")
@pytest.mark.usefixtures("site")
def test_a_job_of_this_kind_that_ends_so(entry: Entry, lives: Lives) -> None:
    """Promise: a failed run is taken for a fast one"""
    lives.check(entry)
