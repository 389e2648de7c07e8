"""Numbers and verdicts in words. A gain always has its interval; the unknown is said to be so."""

from __future__ import annotations

import math
import shlex
import unicodedata
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from jinja2.filters import do_filesizeformat

from io_autotune_report import number_format
from io_autotune_report.document import phase_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from io_autotune_report.document import (
        Cleaned,
        Estimate,
        FindingKind,
        Gain,
        Measured,
        NodeHours,
        Noise,
        Study,
        Value,
    )

NBSP = "\u00a0"
MINUS = "\u2212"
UNKNOWN = "not known"

VERDICTS = {
    "faster": "faster",
    "slower": "slower",
    "not_yet": "not yet",
    "no_effect": "no effect",
    "unclear": "unclear",
}
"""In the order in which verdicts are counted."""

KINDS: dict[FindingKind, str] = {
    "regression": "Regression",
    "quarantine": "Quarantine",
    "drift": "Drift",
    "mixed": "Mixed work",
    "ineffective": "Parameter without effect",
    "nothing_to_win": "Nothing to win",
    "elapsed_worse": "Elapsed gets worse",
    "unreported": "Objective not reported",
    "default_lost": "Default does not complete",
    "other": "Finding",
    "waste": "Budget without gain",
    "already_best": "Default is best",
    "quiet": "Quiet",
}

_SMALL = 10.0
_SAME = 0.05
"""Per cent: less is shown as no change."""
_LARGE = 1000.0
_SHORT = {"node-seconds": "node-s", "node-minutes": "node-min", "node-hours": "node-h"}
_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Categories without a glyph, or that reorder text."""


def known(number: float | None) -> bool:
    """Whether there is a number to show."""
    return number is not None and math.isfinite(number)


def plain(text: object) -> str:
    r"""A name as one can see it: what is invisible or reorders text is spelt as ``\u202e``."""
    return "".join(
        character.encode("unicode_escape", "backslashreplace").decode()
        if unicodedata.category(character) in _HIDDEN
        else character
        for character in str(text)
    )


def count(number: int) -> str:
    """A whole number, thousands apart."""
    return f"{number:,}".replace("-", MINUS)


def settings(values: Mapping[str, Value]) -> str:
    """Values by parameter, as a command takes them."""
    return " ".join(f"{plain(name)}={plain(value)}" for name, value in values.items())


def change(ratio: float | None) -> str:
    """A ratio of times, as a change of time."""
    if ratio is None or not math.isfinite(ratio):
        return UNKNOWN
    per_cent = abs(100 * (ratio - 1))
    if per_cent < _SAME:
        return "the same time"
    digits = 1 if per_cent < _SMALL else 0
    return f"{per_cent:.{digits}f}{NBSP}% {'less' if ratio < 1 else 'more'} time"


def node_amount(hours: float | None, unit: str) -> str:
    """A node's time in a unit, without it."""
    if hours is None or not math.isfinite(hours):
        return UNKNOWN
    return number_format.node_amount(hours, unit).replace("-", MINUS)


def signed_amount(hours: float | None, unit: str) -> str:
    """The same, with its sign."""
    text = node_amount(hours, unit)
    plus = hours is not None and 0 < hours < math.inf and text != "0.0"
    return f"+{text}" if plus else text


def node_unit(*hours: float | None) -> str:
    """The unit that fits the largest of some times."""
    return number_format.node_unit(
        max((abs(one) for one in hours if one is not None and math.isfinite(one)), default=0.0)
    )


def node_time(hours: float | None) -> str:
    """A node's time with its unit."""
    if not known(hours):
        return UNKNOWN
    unit = node_unit(hours)
    return f"{node_amount(hours, unit)}{NBSP}{unit}"


def short_node_time(hours: float | None) -> str:
    """A node's time with its sign and its unit, for a table's cell."""
    if not known(hours):
        return UNKNOWN
    unit = node_unit(hours)
    return f"{signed_amount(hours, unit)}{NBSP}{_SHORT[unit]}"


def time(number: float) -> str:
    """Seconds without unit: two digits below ten."""
    if abs(number) < _SMALL:
        return f"{number:.2g}".replace("-", MINUS)
    return f"{number:,.0f}".replace("-", MINUS)


def seconds(number: float) -> str:
    """Seconds, however many."""
    return f"{time(number)}{NBSP}s"


def _share(share: float, digits: int = 1) -> str:
    text = f"{100 * share:.{digits}f}"
    return (text[1:] if float(text) == 0 and text.startswith("-") else text).replace("-", MINUS)


def percent(share: float | None, digits: int = 1) -> str:
    """A share as a percentage."""
    if share is None or not math.isfinite(share):
        return UNKNOWN
    return f"{_share(share, digits)}{NBSP}%"


def detectable(share: float) -> str:
    """A detectable gain: a decimal below ten."""
    return percent(share, 1 if share < _SMALL / 100 else 0)


def level(share: float) -> str:
    """An interval's level: never rounded up to certainty."""
    return f"{math.floor(1e4 * share + 1e-6) / 100:g}{NBSP}%"


def about(number: int) -> str:
    """An estimated number of runs, to two digits."""
    return count(round(number, 2 - len(str(number))) if number >= _SMALL else number)


def interval(low: float | None, high: float | None) -> str:
    """An interval of shares, for a table's cell."""
    if low is None or high is None or not (known(low) and known(high)):
        return UNKNOWN
    return f"{_share(low)} to {_share(high)}{NBSP}%"


def less_or_more(low: float, high: float) -> str:
    """A gain's interval as less or more time."""
    if low >= 0:
        return f"{_share(low)} to {_share(high)}{NBSP}% less"
    if high <= 0:
        return f"{_share(-high)} to {_share(-low)}{NBSP}% more"
    return f"from {_share(-low)}{NBSP}% more to {_share(high)}{NBSP}% less"


def claims(gain: Gain) -> bool:
    """Whether a gain may be stated."""
    return gain.verdict in ("faster", "slower") and all(
        known(number) for number in (gain.share, gain.low, gain.high)
    )


def order(verdict: str) -> int:
    """A verdict's place among verdicts, to sort by."""
    return list(VERDICTS).index(verdict)


def claim(gain: Gain) -> str:
    """A claimed gain, its interval beside it."""
    gain = of_maximised(gain)
    share = gain.share or 0.0
    return f"{_share(abs(share))}{NBSP}% {'less' if share >= 0 else 'more'} {objective(gain)}"


def objective(gain: Gain) -> str:
    """What a gain is of: time, or another objective's name."""
    if gain.objective == "elapsed":
        return "time"
    if gain.objective == "marked_seconds":
        return "marked I/O seconds"
    if gain.objective == "mpi_io_seconds":
        return "seconds in MPI-IO"
    return plain(gain.objective.removesuffix(" maximised").removeprefix("objective."))


def of_maximised(gain: Gain) -> Gain:
    """The gain in the objective's own shares: of what is maximised a history has reciprocals."""
    if not gain.objective.endswith(" maximised"):
        return gain

    def more(share: float | None) -> float | None:
        return None if share is None or share >= 1 else -share / (1 - share)

    told = gain.objective.removesuffix(" maximised")
    return replace(
        gain, share=more(gain.share), low=more(gain.high), high=more(gain.low), objective=told
    )


def gain_sentence(gain: Gain) -> str:
    """A gain in one or two sentences."""
    gain = of_maximised(gain)
    if claims(gain):
        assert gain.low is not None
        assert gain.high is not None
        return (
            f"Tuned runs {'take' if gain.objective == 'elapsed' else 'have'} {claim(gain)} "
            "than the default "
            f"({less_or_more(gain.low, gain.high)}; {level(gain.level)} sure, however often one "
            f"looks; {_runs(gain)})."
        )
    if gain.verdict == "not_yet":
        return _not_yet(gain)
    if gain.verdict == "no_effect" and gain.low is not None and gain.high is not None:
        return (
            f"No effect that is worth telling apart: {less_or_more(gain.low, gain.high)} "
            f"{objective(gain)} ({level(gain.level)} sure; {_runs(gain)})."
        )
    return f"{VERDICTS[gain.verdict].capitalize()}: {_sentence(gain.reason)}"


def _sentence(text: str) -> str:
    text = plain(text).strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _runs(gain: Gain) -> str:
    runs = "run" if gain.tuned_runs == 1 else "runs"
    return f"{count(gain.tuned_runs)} tuned {runs} and {count(gain.control_runs)} of the default"


def _not_yet(gain: Gain) -> str:
    runs = _runs(gain)
    if not gain.tuned_runs:
        said = "Not yet: no run was made with chosen values."
    elif gain.detectable is None or not known(gain.detectable):
        said = f"Not yet: {runs} show nothing."
    else:
        said = f"Not yet: with {runs} a gain of {detectable(gain.detectable)} could have been seen."
    if gain.runs_needed:
        said += f" About {about(gain.runs_needed)} more runs would show one of the size seen."
    return said


def saved_sentence(sums: NodeHours) -> str:
    """Node-hours saved or cost, with the interval."""
    if sums.saved is None or not known(sums.saved):
        if sums.exploring is None or not known(sums.exploring):
            return "Nothing can be compared with the default yet."
        did = "cost" if sums.exploring >= 0 else "saved"
        amount = node_time(abs(sums.exploring))
        return f"Exploring has {did} {amount}; nothing else is compared yet."
    word = "saved" if sums.saved >= 0 else "lost"
    said = f"{node_time(abs(sums.saved))} {word}"
    if sums.low is None or sums.high is None or not (known(sums.low) and known(sums.high)):
        return f"{said}; how sure that is, is not known."
    return f"{said} (interval {node_interval(sums)})."


def node_interval(sums: NodeHours) -> str:
    """The interval saved, in the unit of what was saved; negative is lost."""
    unit = node_unit(sums.saved)
    return f"{node_amount(sums.low, unit)} to {node_amount(sums.high, unit)}"


def quantity(name: str, number: float) -> str:
    """A measure's or an objective's number, with its unit."""
    if name.endswith("_bytes"):
        return do_filesizeformat(number).replace(" ", NBSP)
    text = f"{number:.3g}" if abs(number) < _LARGE else f"{number:,.0f}"
    return f"{text}{NBSP}s" if name == "elapsed" or name.endswith("_seconds") else text


def typical(name: str, one: Measured.Typical | None) -> str:
    """A median; a dash where there is none."""
    return "\u2013" if one is None else quantity(name, one.median)


def typical_ends(name: str, one: Measured.Typical | None) -> str:
    """Its interval, if it has one."""
    if one is None or one.low is None or one.high is None:
        return ""
    return f"{quantity(name, one.low)} to {quantity(name, one.high)}".replace(" ", NBSP)


def cleaned_sentence(cleaned: Cleaned, gain: Gain) -> str:
    """What is estimated without the noise that others explain."""
    name = gain.objective.removesuffix(" maximised")

    def of(one: Estimate) -> str:
        return (
            f"{quantity(name, one.mean)} ({quantity(name, one.low)} to {quantity(name, one.high)})"
        )

    tuned = "" if cleaned.recommended is None else f", the recommended {of(cleaned.recommended)}"
    what = "elapsed" if name == "elapsed" else objective(gain)
    return (
        f"Where other runs fare as ever, {what} of the default is {of(cleaned.default)}{tuned} "
        f"(95{NBSP}% intervals); others explain {percent(cleaned.share, 0)} of the noise."
    )


def scatter_sentence(noise: Noise) -> str:
    """How runs of one parametrization scatter."""
    if not known(noise.cv):
        return "How runs of one parametrization scatter is not known."
    return f"Runs of one parametrization scatter by {percent(noise.cv)}."


def noise_sentence(noise: Noise) -> str:
    """The same, with what statistics say of it."""
    said = scatter_sentence(noise).rstrip(".")
    if known(noise.outliers):
        said += f"; {percent(noise.outliers)} of the runs lie beyond Tukey's fences"
    if noise.varies is None:
        return f"{said}."
    tests = ", ".join(
        f"{name} p = {p:.2g}"
        for name, p in (
            ("by Levene's test,", noise.levene_p),
            ("Bartlett's, which takes times for normal,", noise.bartlett_p),
        )
        if p is not None and known(p)
    )
    differs = "differs" if noise.varies else "does not differ measurably"
    return f"{said}. Noise {differs} between parametrizations ({tests or 'untested'})."


def value(setting: Value | None) -> str:
    """A value; a dash where there is none."""
    return "\u2013" if setting is None else plain(setting)


def short_value(setting: Value) -> str:
    """An axis value: powers of 1024 in short."""
    if isinstance(setting, int):
        for factor, prefix in ((1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki")):
            if setting and setting % factor == 0:
                return f"{setting // factor}{NBSP}{prefix}"
    if isinstance(setting, float):
        return f"{setting:.3g}"
    return plain(setting)


def parametrization(study: Study) -> str:
    """The choice as ``io-autotune pin`` takes it, quoted."""
    return " ".join(
        shlex.quote(f"{parameter.name}={parameter.chosen}")
        for parameter in study.parameters
        if parameter.chosen is not None
    )


def context(study: Study) -> str:
    """The facets of a study, and its cluster where there are several."""
    facets = study.context if study.cluster is None else {"cluster": study.cluster, **study.context}
    return " ".join(f"{plain(name)}={plain(facets[name])}" for name in sorted(facets))


def _instant(text: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _day(instant: datetime) -> str:
    return f"{instant.day}{NBSP}{instant:%B}{NBSP}{instant.year}"


def day(text: str) -> str:
    """An instant's day, or the text if it is none."""
    instant = _instant(text)
    return _day(instant) if instant else plain(text)


def ordinal(text: str) -> int:
    """An instant's day, counted from one that is the same for all."""
    return datetime.fromisoformat(text).toordinal()


def is_one_day(first: str, last: str) -> bool:
    """Whether days up to ``last``, exclusive, are one; clocks may be put back on it."""
    begin, end = _instant(first), _instant(last)
    return begin is not None and end is not None and end - begin < timedelta(days=1.5)


def phase(name: str) -> str:
    """A study's phase as people are told it."""
    return plain(phase_in_words(name))


def month(text: str) -> str:
    """A month, given as year-month."""
    return f"{datetime.fromisoformat(f'{text}-01'):%B}{NBSP}{text[:4]}"


def quarter(text: str) -> str:
    """The quarter of a month, given likewise."""
    return f"Q{(int(text[5:7]) + 2) // 3}{NBSP}{text[:4]}"


def moment(text: str) -> str:
    """To the minute, by its own clock."""
    instant = _instant(text)
    return f"{_day(instant)}, {instant:%H:%M}{NBSP}{instant:%Z}" if instant else plain(text)


def span(first: str, last: str) -> str:
    """Days up to ``last``, exclusive."""
    begin, end = _instant(first), _instant(last)
    if begin is None or end is None:
        return f"{plain(first)} to {plain(last)}"
    final = end - timedelta(microseconds=1)
    if final.date() <= begin.date():
        return _day(begin)
    return f"{_day(begin)} to {_day(final)}"
