"""What the service has decided of a study, as it keeps it with the study."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec

from io_autotune_report.document import Cleaned, Gain


class Effect(msgspec.Struct, frozen=True):
    """What the runs of an epoch's recommendations show against its control runs.

    Logarithms are of the default's elapsed, or other objective, over the recommended
    parametrization's; node-hours are of elapsed.
    """

    epoch: int
    parametrization: str
    number: int
    """Which comparison of the study's life it is, from 1."""
    blocks: int
    """Control runs."""
    tuned_runs: int
    log_ratio: float | None
    standard_error: float | None
    default_hours: float
    """Node-hours that the default would have taken for the chosen runs: the weight in sums."""
    saved: float
    """Node-hours, arithmetically."""
    controls: float
    """Node-hours spent by control runs beyond what the chosen parametrization would have taken."""
    net_variance: float | None
    """Of ``saved`` less ``controls``."""
    a_month: float | None
    """Node-hours a month, at the rate of the last 30 days; none before a week has passed."""
    last: int
    """The start of its last run, microseconds since 1970."""


class Found(msgspec.Struct, frozen=True):
    """What a person should know of a study."""

    kind: str
    """The service's word: a newer service may have more of them."""
    what: str
    action: str = msgspec.field(name="do")
    parametrization: dict[str, str | int | float] | None = None


UNKNOWN = Gain(
    verdict="not_yet",
    reason="The service has not assessed this study yet.",
    share=None,
    low=None,
    high=None,
    level=0.95,
    tuned_runs=0,
    control_runs=0,
    detectable=None,
    runs_needed=None,
)
"""The gain of a study without an assessment."""


@dataclass(frozen=True)
class Assessment:
    """The gain of what a study recommends, the effects of all its comparisons, its findings."""

    epoch: int = 0
    gain: Gain = UNKNOWN
    effects: tuple[Effect, ...] = ()
    findings: tuple[Found, ...] = field(default=())
    objective: str = "elapsed"
    cleaned: Cleaned | None = None

    @property
    def current(self) -> Effect | None:
        """The effect that the gain is of: its runs are the latest."""
        if self.gain.control_runs == 0:
            return None
        here = [effect for effect in self.effects if effect.epoch == self.epoch]
        return max(here, key=lambda effect: effect.last, default=None)


_DECODER = msgspec.json.Decoder(Assessment)


def decode(text: str | None) -> Assessment:
    """An assessment from the JSON that the service keeps; nothing known where it keeps none."""
    if text is None:
        return Assessment()
    kept = _DECODER.decode(text)
    return replace(kept, gain=replace(kept.gain, objective=kept.objective))
