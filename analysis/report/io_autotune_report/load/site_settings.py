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
    judges: list[_Judge]


_DECODER = msgspec.json.Decoder(_Found)


def site_default(row: SiteSettingRow) -> SiteDefault | None:
    """What is told of an accelerator; ``None`` where nothing is in common, nor in force."""
    if row.found is None:
        if row.in_force is None:
            return None
        return SiteDefault(row.accelerator, None, row.in_force, cluster=row.cluster)
    found = _DECODER.decode(row.found)
    ratios = [judge.ratio for judge in found.judges]
    losers = [Judge(each.study_id, each.ratio.mean) for each in found.judges]
    return SiteDefault(
        accelerator=row.accelerator,
        values=found.values,
        in_force=row.in_force,
        users=found.users,
        studies=len(found.judges),
        gain=sum(ratio.high < 1 for ratio in ratios),
        ratio=found.ratio.mean,
        low=found.ratio.low,
        high=found.ratio.high,
        smallest=min((ratio.mean for ratio in ratios), default=None),
        largest=max((ratio.mean for ratio in ratios), default=None),
        worst=max((ratio.high for ratio in ratios), default=None),
        losers=sorted(
            (each for each in losers if each.ratio > 1), key=lambda each: each.ratio, reverse=True
        ),
        cluster=row.cluster,
    )
