"""The measured grid, and the patterns: each is an application of one site."""

from collections.abc import Sequence

from measure.plan import Plan, Value, parameters_of

from measure_patterns.job import Pattern

LEVELS: dict[str, list[Value]] = {
    "cb_config_list": ["*:1", "*:2", "*:*"],
    "romio_cb_write": ["automatic", "disable"],
    "romio_cb_read": ["automatic", "disable"],
    "romio_ds_write": ["automatic", "disable"],
    "romio_ds_read": ["automatic", "disable"],
}
"""48 parametrizations of the hints that one host feels; files are smaller than any buffer."""

PATTERNS: Sequence[Pattern] = (
    Pattern("strided-64", ranks=4, block_size=64, blocks=8192),
    Pattern("strided-512", ranks=4, block_size=512, blocks=2048),
    Pattern("strided-4k", ranks=4, block_size=4096, blocks=512),
    Pattern("strided-64k", ranks=2, block_size=65536, blocks=128),
    Pattern("strided-8-ranks", ranks=8, block_size=256, blocks=1024),
    Pattern("strided-2-ranks", ranks=2, block_size=128, blocks=32768),
    Pattern("nested-128", ranks=4, block_size=128, blocks=8192, nested=16),
    Pattern("nested-2k", ranks=6, block_size=2048, blocks=256, nested=8),
    Pattern("segmented", ranks=4, block_size=2097152, blocks=1),
    Pattern("write-only", ranks=4, block_size=256, blocks=8192, reads=0),
    Pattern("read-mostly", ranks=4, block_size=256, blocks=2048, reads=3),
    Pattern("independent", ranks=4, block_size=1024, blocks=1024, collective=False),
)


HELD_OUT = frozenset({"strided-4k", "strided-2-ranks", "nested-2k", "read-mostly"})
"""No constant of the engine was chosen on these, nor will be. Written down before any optimiser had
run on any of the patterns; a pattern never moves here."""


def plan(catalogue: str, pattern: Pattern, blocks: int, seed: int) -> Plan:
    """A pattern's plan, by the text of romio's catalogue file; PlanError if it lacks a value."""
    objective = "seconds from before open to after close, writing and reading; see README.md"
    levels = parameters_of(catalogue, LEVELS)
    return Plan(pattern.name, levels, pattern, blocks, seed, objective)
