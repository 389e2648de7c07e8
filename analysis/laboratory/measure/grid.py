"""The measured grid and its job."""

from measure.plan import Plan, Value, Workload, parameters_of

ACCELERATOR = "romio"

LEVELS: dict[str, list[Value]] = {
    "cb_buffer_size": [1048576, 4194304, 16777216, 33554432, 67108864],
    "cb_config_list": ["*:1", "*:2", "*:4"],
    "romio_cb_write": ["automatic", "disable"],
    "romio_cb_read": ["automatic", "disable"],
    "romio_ds_write": ["automatic", "disable"],
    "romio_ds_read": ["automatic", "disable"],
}
"""240 parametrizations of the hints that this job feels; the others stay at their default.

Its blocks interleave, so that ``enable`` is what ``automatic`` does; of four ranks on one node
``*:4`` is all, and ``cb_config_list`` alone sets the number of aggregators. Where collective
buffering is disabled, data sieving decides how the small blocks are moved."""

WORKLOAD = Workload(ranks=4, block_size=64, blocks=65536)
"""Small enough for thousands of runs, and of blocks so small that data sieving matters."""


def romio(catalogue: str, blocks: int, seed: int) -> Plan:
    """The plan, by the text of the catalogue file; PlanError if it does not allow the grid."""
    return Plan(ACCELERATOR, parameters_of(catalogue, LEVELS), WORKLOAD, blocks, seed)
