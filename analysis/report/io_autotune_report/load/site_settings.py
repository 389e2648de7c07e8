"""What the service has found that the studies of an accelerator have in common."""

from __future__ import annotations

import msgspec

from io_autotune_report.document import Judge, SiteDefault, Value
from io_autotune_report.load.database import SiteSettingRow


class _Ratio(msgspec.Struct, frozen=True):
    mean: float
    low: float
    high: float


class _Judge(msgspec.Struct, frozen=True):
    study_id: int
    ratio: _Ratio


class _Found(msgspec.Struct, frozen=True):
    values: dict[str, Value]
    users: int
    ratio: _Ratio
    studies: int
    gain: int
    smallest: float
    largest: float
    worst: float
    losers: list[_Judge]


_DECODER = msgspec.json.Decoder(_Found)


def site_default(row: SiteSettingRow) -> SiteDefault | None:
    """What is told of an accelerator; ``None`` where nothing is in common, nor in force."""
    if row.found is None:
        if row.in_force is None:
            return None
        return SiteDefault(row.accelerator, None, row.in_force, cluster=row.cluster)
    found = _DECODER.decode(row.found)
    return SiteDefault(
        accelerator=row.accelerator,
        values=found.values,
        in_force=row.in_force,
        users=found.users,
        studies=found.studies,
        gain=found.gain,
        ratio=found.ratio.mean,
        low=found.ratio.low,
        high=found.ratio.high,
        smallest=found.smallest,
        largest=found.largest,
        worst=found.worst,
        losers=[Judge(each.study_id, each.ratio.mean) for each in found.losers],
        cluster=row.cluster,
    )
