"""Changes since the night before."""

from __future__ import annotations

from collections.abc import Iterator

from io_autotune_report.document import Change, Group, Study, phase_in_words
from io_autotune_report.number_format import node_time
from io_autotune_report.previous_report import Earlier, Kept, kept

CLAIMS = {
    "faster": "a gain is claimed now",
    "slower": "a loss is claimed now: what was chosen is slower than the default",
    "not_yet": "nothing is claimed any more",
    "no_effect": "settled that there is no difference worth telling",
    "unclear": "its gain is not clear any more",
}


def changes(total: Group, studies: list[Study], before: Earlier | None) -> list[Change]:
    """The site's, then each study's; none without an earlier night."""
    if before is None:
        return []
    return [*_of_site(total, before), *(each for study in studies for each in _of(study, before))]


def _of_site(total: Group, before: Earlier) -> Iterator[Change]:
    runs = total.runs - before.night.runs
    was, now = before.night.node_hours.saved, total.node_hours.saved
    if runs > 0:
        saved = ""
        if was is not None and now is not None:
            # New runs, and what they tell of the earlier ones.
            word = "more" if now >= was else "less"
            saved = f"; the total saved is {node_time(abs(now - was))} {word}"
        yield Change(None, None, f"{runs:,} new runs since {before.night.folder}{saved}")


def _of(study: Study, before: Earlier) -> Iterator[Change]:
    was, now = before.studies.get(study.study_id), kept(study)

    def change(what: str) -> Change:
        return Change(study.study_id, study.application, what)

    if was is None:
        yield change(f"a new study, on {study.accelerator}")
        return
    if was.epoch != now.epoch:
        yield change(f"a new epoch began, its {now.epoch}.")
    else:
        then, today = phase_in_words(was.phase), phase_in_words(now.phase)
        if then != today:
            yield change(f"went from {then} to {today}")
    if was.chosen != now.chosen and now.chosen:
        which = "another" if was.chosen else "a first"
        yield change(f"{which} parametrization is chosen")
    yield from map(change, _verdicts(was, now))


def _verdicts(was: Kept, now: Kept) -> Iterator[str]:
    if was.verdict == now.verdict:
        return
    # That the same is not known of a new choice is no news of its own.
    if now.verdict == "not_yet" and was.verdict not in ("faster", "slower"):
        return
    gain = ""
    if now.gain is not None and now.verdict != "no_effect":
        gain = f" ({100 * now.gain:.1f} %)"
    yield CLAIMS[now.verdict] + gain
