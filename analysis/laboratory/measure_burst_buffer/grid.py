"""The measured grid and its job."""

from measure.plan import Parameter, Plan

from measure_burst_buffer.job import Checkpoints

PARAMETERS = (
    Parameter("workers", "int", (2, 4, 6, 8, 10, 12), 10),
    Parameter("destagers", "int", (2, 4, 6, 8, 10, 12), 10),
    Parameter("cache_mib", "int", (8, 10, 12), 12),
    Parameter("threshold", "int", (50, 60, 70, 80, 90), 90),
)
"""Table III of Robert 2020, its caches of 40, 50 and 60 GB scaled; the default is the paper's."""

JOB = Checkpoints(
    processes=16,
    checkpoints=2,
    each_mib=18,
    request_kib=256,
    computes=0.1,
    read_mib=9,
    instrument=(
        "--rate=120",
        "--latency-ms=7",
        "--streams=7",
        "--penalty=0.12",
        "--request-ms=3",
        "--cores=14",
        "--contention=0.06",
        "--reclaim-ms=8",
        "--neighbour=0.25",
    ),
)
"""It writes three times the largest cache, as in the paper (174 GB, 60 GB)."""


def burst_buffer(blocks: int, seed: int) -> Plan:
    """The plan."""
    objective = "elapsed seconds of a checkpointing job on tests/burst-buffer; see README.md"
    return Plan("burst-buffer", PARAMETERS, JOB, blocks, seed, objective)
