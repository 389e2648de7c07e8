"""The generated site's accelerators: small spaces in the form of the catalogue's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
from io_autotune_report.load import parametrizations

Point = tuple[int, ...]
"""A level of each parameter; those of parameters that do not exist are the default's."""


@dataclass(frozen=True)
class Accelerator:
    """A name and a space."""

    name: str
    parameters: list[dict[str, Any]]

    @property
    def space(self) -> str:
        """As the store keeps it."""
        return json.dumps(self.parameters)

    @property
    def default(self) -> Point:
        """Its own default."""
        return tuple(each["values"].index(each["default"]) for each in self.parameters)

    def levels(self) -> list[int]:
        """How many values each parameter has."""
        return [len(each["values"]) for each in self.parameters]

    def canonical(self, point: Point) -> Point:
        """The point with inactive parameters at their defaults."""
        default, values = self.default, self._values(point)
        return tuple(
            level if each["name"] in values else default[place]
            for place, (each, level) in enumerate(zip(self.parameters, point, strict=True))
        )

    def key(self, point: Point) -> str:
        """The parametrization as the store keeps it."""
        return parametrizations.key(self._values(point))

    def _values(self, point: Point) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for each, level in zip(self.parameters, point, strict=True):
            when = each.get("when")
            if when is None or values.get(when["parameter"]) in when["is"]:
                values[each["name"]] = each["values"][level]
        return values

    def draw(self, rng: np.random.Generator) -> Point:
        """A random point, about half of its parameters at their defaults."""
        drawn = [int(rng.integers(count)) for count in self.levels()]
        kept = rng.random(len(drawn)) < 0.5
        mixed = np.where(kept, self.default, drawn)
        return self.canonical(tuple(int(level) for level in mixed))


def _parameter(name: str, values: list[Any], default: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401
    kind = "categories" if all(isinstance(value, str) for value in values) else "ordered"
    return {"name": name, "kind": kind, "values": values, "default": default, **more}


MIB = 1 << 20

ACCELERATORS = (
    Accelerator(
        "romio",
        [
            _parameter("cb_buffer_size", [MIB, 4 * MIB, 16 * MIB, 64 * MIB], 16 * MIB),
            _parameter("cb_nodes", ["automatic", 1, 2, 4, 8], "automatic"),
            _parameter("romio_cb_write", ["automatic", "enable", "disable"], "automatic"),
            _parameter("romio_ds_write", ["automatic", "enable", "disable"], "automatic"),
            _parameter("ind_wr_buffer_size", [131072, 524288, 2097152], 524288),
        ],
    ),
    Accelerator(
        "burst-buffer",
        [
            _parameter("write_back", ["off", "on"], "off"),
            _parameter(
                "destagers",
                [1, 2, 4, 8, 16],
                4,
                when={"parameter": "write_back", "is": ["on"]},
            ),
            _parameter("cache_mib", [256, 512, 1024, 2048], 512),
            _parameter("chunk_kib", [64, 256, 1024, 4096], 1024),
        ],
    ),
    Accelerator(
        "lustre-client",
        [
            _parameter("max_rpcs_in_flight", [4, 8, 16, 32, 64], 8),
            _parameter("max_dirty_mb", [32, 128, 512, 2048], 32),
            _parameter("max_read_ahead_mb", [0, 64, 256, 1024], 64),
            _parameter("checksums", ["on", "off"], "on"),
        ],
    ),
)
