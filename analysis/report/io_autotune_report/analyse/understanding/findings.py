"""What a person should look at in a study, or may stop looking at, and what to do about it.

Thousands of studies are looked at every night: what tests stand behind is at 1 in 10,000.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.stats import fisher_exact, mannwhitneyu

from io_autotune_report.analyse.estimators.blocks import comparisons, present
from io_autotune_report.analyse.understanding.tested import Array
from io_autotune_report.document import Finding, Study
from io_autotune_report.frames import EXPLORING_ROLES
from io_autotune_report.wording import per_cent

SURE = 1e-4
WORTH = 0.1
"""A change of less than this is not worth a person's time."""
LEAST_RUNS = 12
"""On either side of a change."""
LEAST_BLOCKS = 8
"""Control runs and what is around them, likewise."""
QUIET_DAYS = 30

_WASTEFUL = 1.5
_LEAST_EXPLORED = 15
_LEAST_FAILED = 3
_DEFAULT_RUNS = (4, 32)
_MOST_CV = 0.5
_LEAST_APART, _LEAST_SECONDS = 1.7, 0.5


def findings(study: Study, runs: pd.DataFrame) -> list[Finding]:
    """Of one study and all its runs (columns: ``frames.RUNS``)."""
    here = runs[runs["epoch"] == study.epoch].sort_values(["started_at", "ordinal"])
    said = [
        *_regression(study, here),
        *_drift(study, here),
        *_mixed(study, here),
        *_quarantine(study, here),
        *_waste(study, here),
        *_already_best(study),
    ]
    # A study that is slower now because all is slower has one cause.
    kinds = {finding.kind for finding in said}
    return [finding for finding in said if finding.kind != "drift" or "mixed" not in kinds]


def _finding(study: Study, kind: str, what: str, do: str) -> Finding:
    return Finding(kind, study.study_id, study.application, what, do)  # type: ignore[arg-type]


def _counted(runs: pd.DataFrame) -> pd.DataFrame:
    return runs[(runs["effect"] == "sample") & runs["key"].notna() & (runs["elapsed"] > 0)]


def _regression(study: Study, here: pd.DataFrame) -> Iterator[Finding]:
    gain, number = study.gain, study.study_id
    if gain.verdict == "slower" and gain.share is not None and gain.high is not None:
        yield _finding(
            study,
            "regression",
            f"What is chosen takes {per_cent(-gain.share)} longer than the default"
            f" ({per_cent(-gain.high)} at least), by {gain.control_runs} control runs.",
            f'`io-autotune reset {number} --why "chosen parametrization is slower"` searches anew;'
            " `io-autotune explain JOBID` says why it was chosen.",
        )
        return
    change = _change(_against_control(here), LEAST_BLOCKS)
    if change is not None and change[1] > 1 + WORTH and gain.verdict != "not_yet":
        yield _finding(
            study,
            "regression",
            f"Against the control runs around them, tuned runs take {per_cent(change[1] - 1)}"
            f" longer since {change[0]:%Y-%m-%d} than before.",
            f'If that day explains it, `io-autotune reset {number} --why "..."` searches anew.',
        )


def _drift(study: Study, here: pd.DataFrame) -> Iterator[Finding]:
    """All runs together: those of the default, and tuned ones by their own level."""
    together = pd.concat([_centred(here, "control"), _centred(here, "settled")])
    change = _change(together.sort_index(), LEAST_RUNS)
    if change is None or 1 / (1 + WORTH) < change[1] < 1 + WORTH:
        return
    when, ratio = change
    more = f"{per_cent(ratio - 1)} longer" if ratio > 1 else f"{per_cent(1 - ratio)} less"
    yield _finding(
        study,
        "drift",
        f"Since {when:%Y-%m-%d} all runs take {more} than before, those of the default too.",
        "Gains are measured against the present and hold. If the work has changed,"
        f' `io-autotune reset {study.study_id} --why "other work since {when:%Y-%m-%d}"`.',
    )


def _logs(here: pd.DataFrame, role: str) -> pd.Series:
    """Log elapsed by start, of settled runs of this role and of the latest parametrization."""
    runs = _counted(here[(here["phase"] == "settled") & (here["role"] == role)])
    if len(runs):
        runs = runs[runs["key"] == runs["key"].iloc[-1]]
    return pd.Series(np.log(runs["elapsed"].to_numpy()), index=pd.DatetimeIndex(runs["started_at"]))


def _against_control(here: pd.DataFrame) -> pd.Series:
    """Log of the tuned runs' elapsed over the control run's, by block of the latest choice."""
    latest = present(here)
    for each in comparisons(here):
        if each.key == latest.key:
            with np.errstate(invalid="ignore"):  # where both were cut short, nobody knows
                apart = np.nanmedian(each.tuned, axis=1) - each.control
            known = pd.Series(apart, index=pd.DatetimeIndex(each.control_started, tz="UTC"))
            return known[np.isfinite(apart)]
    return pd.Series(dtype=np.float64)


def _centred(here: pd.DataFrame, role: str) -> pd.Series:
    logs = _logs(here, role)
    return logs - logs.median() if len(logs) else logs


def _change(logs: pd.Series, least: int) -> tuple[pd.Timestamp, float] | None:
    """When the level changed most, and to how many times as much; none if not sure.

    The place is that of the largest cumulative deviation from the median, which finds the best of
    all places; hence the two halves are compared at the error rate over the number of places.
    """
    if len(logs) < 2 * least:
        return None
    values = logs.to_numpy()
    clipped = np.clip(values, *np.quantile(values, [0.05, 0.95]))
    walk = np.cumsum(clipped - clipped.mean())[least - 1 : -least]
    place = int(np.argmax(np.abs(walk))) + least
    before, after = values[:place], values[place:]
    if mannwhitneyu(before, after).pvalue > SURE / len(logs):
        return None
    return logs.index[place], float(np.exp(np.median(after) - np.median(before)))


def _mixed(study: Study, here: pd.DataFrame) -> Iterator[Finding]:
    """The engine's own rules (docs/engine.md, "Same name, different work")."""
    counted = _counted(here)
    least, most = _DEFAULT_RUNS
    elapsed = counted.loc[counted["default"], "elapsed"].to_numpy()[-most:]
    if elapsed.size < least or not _is_mixed(elapsed):
        return
    yield _finding(
        study,
        "mixed",
        f"The default's latest {elapsed.size} runs take from {elapsed.min():.3g} to"
        f" {elapsed.max():.3g} s: this looks like different work under one name.",
        "Give each kind of work a name of its own (sbatch --io-autotune=app=NAME). If it is one"
        f" application's all the same: `io-autotune accept {study.study_id}`.",
    )


def _is_mixed(elapsed: Array) -> bool:
    without = np.delete(elapsed, np.argmax(elapsed))
    if min(_cv(elapsed), _cv(without)) > _MOST_CV:
        return True
    logs = np.sort(np.log(elapsed))
    count = logs.size
    smallest = max(2, int(np.ceil(count / 5)))
    cuts = range(smallest, count - smallest + 1)
    if not cuts:
        return False
    left = [np.var(logs[:cut]) * cut + np.var(logs[cut:]) * (count - cut) for cut in cuts]
    cut = cuts[int(np.argmin(left))]
    apart = float(logs[cut:].mean() - logs[:cut].mean())
    pooled = float(np.sqrt(min(left) / max(count - 2, 1)))
    seconds = float(np.exp(logs[cut:].mean()) - np.exp(logs[:cut].mean()))
    far = apart >= np.log(_LEAST_APART) and apart >= (2.8 + 32 / count) * pooled
    return bool(far and seconds > _LEAST_SECONDS)


def _cv(elapsed: Array) -> float:
    return float(np.std(elapsed, ddof=1) / np.mean(elapsed)) if elapsed.size > 1 else 0.0


def _quarantine(study: Study, here: pd.DataFrame) -> Iterator[Finding]:
    """A parametrization under which runs fail more often than under the default."""
    known = here[here["key"].notna() & here["effect"].isin(["sample", "failure"])]
    failed = known["effect"] == "failure"
    if int(failed.sum()) < _LEAST_FAILED:
        return
    of_default = known["default"]
    good, bad = int((of_default & ~failed).sum()), int((of_default & failed).sum())
    tuned = known[~of_default]
    for key, runs in tuned.groupby("key", observed=True):
        fails = int((runs["effect"] == "failure").sum())
        table = [[fails, len(runs) - fails], [bad, good]]
        often = fisher_exact(table, alternative="greater").pvalue < SURE
        if fails >= _LEAST_FAILED and often:
            yield _finding(
                study,
                "quarantine",
                f"Under {key} {fails} of {len(runs)} runs failed, under the default {bad} of"
                f" {good + bad}.",
                f"`io-autotune history --study {study.study_id}` shows them;"
                f' if it is still chosen, `io-autotune reset {study.study_id} --why "runs fail"`.',
            )


def _waste(study: Study, here: pd.DataFrame) -> Iterator[Finding]:
    hours, number = study.node_hours, study.study_id
    if hours.high is not None and hours.saved is not None and hours.high < 0:
        yield _finding(
            study,
            "waste",
            f"Tuning has cost {-hours.saved:,.1f} node-hours more than it saved.",
            f"{_pin_default(study)} ends it.",
        )
        return
    counted = _counted(here)
    explored = counted[counted["role"].isin(EXPLORING_ROLES)]
    default = counted.loc[counted["default"], "elapsed"]
    if study.phase == "settled" or len(explored) < _LEAST_EXPLORED or default.empty:
        return
    ratio = float(explored["elapsed"].mean() / default.mean())
    best = explored.groupby("key", observed=True)["elapsed"].mean().min() / default.mean()
    if ratio > _WASTEFUL and best > 1 - WORTH:
        yield _finding(
            study,
            "waste",
            f"{len(explored)} exploring runs took {ratio:.1f} times the default on average, and"
            " none of what they tried is a tenth faster.",
            f'`io-autotune pin {number} --why "nothing to win"` ends the search with what is'
            " recommended now.",
        )


def _pin_default(study: Study) -> str:
    """The command that gives every later run the default: one of its values suffices."""
    known = [each for each in study.parameters if each.default is not None]
    if not known:
        return f'`io-autotune pin {study.study_id} --why "default is best"`'
    # What the page says is copied into a shell, and names are not ours.
    value = shlex.quote(f"{known[0].name}={known[0].default}")
    return f'`io-autotune pin {study.study_id} {value} --why "default is best"`'


def quiet(study: Study, last_run: pd.Timestamp, now: pd.Timestamp) -> Iterator[Finding]:
    """Whether its search rests, ``now`` being the end of the night's range."""
    days = (now - last_run).days
    if study.phase not in ("settled", "pinned") and days > QUIET_DAYS:
        yield _finding(
            study,
            "quiet",
            f"No run for {days} days, and the search has not ended.",
            "Nothing: it goes on with the next run.",
        )


def _already_best(study: Study) -> Iterator[Finding]:
    if study.phase == "settled" and study.gain.verdict == "no_effect":
        yield _finding(
            study,
            "already_best",
            f"The default is as good as anything that {study.counted} runs have found."
            f" {study.gain.reason}",
            f"{_pin_default(study)} stops here; that is a result.",
        )
