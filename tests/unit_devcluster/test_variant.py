"""What a cluster can be made of, and what does not go together."""

from __future__ import annotations

import json
from typing import Any

import pytest
from devcluster import variant
from devcluster.errors import ClusterError
from devcluster.variant import Variant


@pytest.mark.parametrize(
    ("given", "sources"),
    [
        (Variant(), ("squeue",)),
        (Variant(jobcomp=True), ("jobcomp",)),
        (Variant(accounting=True), ("sacct",)),
        (Variant(jobcomp=True, accounting=True), ("jobcomp", "sacct")),
        (Variant(jobcomp=True, sources=("squeue",)), ("squeue",)),
        (Variant(jobcomp=True, sources=()), ()),
    ],
)
def test_the_sources_are_those_asked_for_or_what_there_is(
    given: Variant, sources: tuple[str, ...]
) -> None:
    assert given.effective_sources() == sources


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"sources": ("jobcomp",)}, "ask for 'jobcomp'"),
        ({"sources": ("sacct",), "jobcomp": True}, "ask for 'accounting'"),
        ({"sources": ("rumour",)}, "jobcomp, squeue, sacct"),
        ({"slurmd_timeout": 0}, "slurmd_timeout = 0"),
        ({"min_job_age": -1}, "min_job_age = -1"),
    ],
)
def test_refuses(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(ClusterError, match=reason):
        Variant(**options)


@pytest.mark.parametrize("sources", [None, (), ("jobcomp", "squeue")])
def test_round_trip(sources: tuple[str, ...] | None) -> None:
    given = Variant(jobcomp=True, memory=True, slurmd_timeout=6, sources=sources)
    assert variant.from_json(json.loads(json.dumps(variant.to_json(given)))) == given
