"""Cao 2018: its sentences on the space itself, by figures 3 and 9 and tables 4 and 5."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median

import numpy as np
from peers.tables import Table

from papers import file_systems, optima
from papers.cao2018_replays import NEAR_OPTIMAL
from papers.claims import (
    HOLDS,
    NOT,
    UNDECIDED,
    Claim,
    Difference,
    Side,
    above,
    judged,
    listed,
    paired,
    some,
    untried,
)

USUAL = (0.2, 0.4)
"""Where the ratio of the worst throughput to the best mostly is."""
TOP = 40.0
"""The default is ranked below so many of all, %."""
EXTREME = 0.01
"""The least of these ratios."""
WIDE = 0.5
"""The worst has less than this share of the best's throughput: it varies widely. Our bound."""
TWICE = 2.0
"""By how much throughput would grow with what it is proportional to."""
XFS = frozenset({"block_size", "groups"})
"""The two that dominate there under the paper's Fileserver."""
SIZES = ("1024", "2048", "4096")


@dataclass(frozen=True)
class Systems:
    """The measured file systems."""

    table: Table
    each: Mapping[str, Table]
    last: Mapping[str, Mapping[str, float]]
    """By selection, the shares of values in the last generation, %."""
    settled: Mapping[str, Mapping[str, list[bool]]]
    """By selection and value, in which studies all of the last generation have it."""
    diversity: Mapping[str, Difference]
    """By selection, how much the commonest value's share grows from the first to the last."""
    diverse: Mapping[str, Mapping[str, list[bool]]]
    """By selection and parameter, in which studies the first generation has all values."""
    staying: Mapping[str, Difference]
    """By selection, how often a commonest value stays the commonest, %."""


def of_the_space(
    tables: Sequence[Table], systems: Systems, patterns: Sequence[Table]
) -> list[Claim]:
    """Section 2.1, figure 3, table 4."""
    better = {on.name: optima.better(on) for on in tables}
    gains = {on.name: on.truths[on.default] / on.truths[on.best] for on in tables}
    worst = {on.name: optima.worst(on) for on in tables}
    peaks = {on.name: optima.peaks(on) for on in tables}
    optimal = {on.name: on.default in optima.candidates(on) for on in tables}
    different = optima.surely_different(patterns)
    pairs = len(list(combinations(patterns, 2)))
    low = [share.side(1, TOP) for share in better.values()]
    wide = [share.side(-1, WIDE) for share in worst.values()]
    usual = [_between(share, USUAL) for share in worst.values()]
    extreme = [on.name for on in tables if optima.worst(on, 0.05 / len(tables)).high <= EXTREME]
    not_linear = _not_linear(systems.each["ext3"])
    return [
        judged(
            '"A system is non-linear when the output is not directly proportional to the input. '
            'Many computer systems are non-linear [...], including storage systems" (figure 1: '
            "GPFS's latency to its pagepool)",
            {name: of.side(1) is not Side.OPEN or Side.OPEN for name, of in not_linear.items()},
            listed(not_linear),
            tried="Ext3's throughput with blocks of 4K is not twice that with blocks of 2K, all "
            "else alike: the difference, over the best's, under each journal option",
        ),
        judged(
            '"the parameter space for storage systems is often sparse, irregular, and contains '
            'multiple peaks"',
            {name: True if count > 1 else Side.OPEN for name, count in peaks.items()},
            ", ".join(f"{name} {count}" for name, count in peaks.items()),
            tried="of peaks alone: on each table, several parametrizations surely are faster than "
            "every one that differs in one parameter (5 % over all of a table)",
        ),
        judged(
            '"default Ext4 configurations are always sub-optimal" (figure 3; on '
            'M1-Mailserver-HDD1 "the optimal configuration performs 2.5 times better")',
            {name: Side.OPEN if may_be else True for name, may_be in optimal.items()},
            "; ".join(
                f"{name}: the best has {gains[name]:.2f} times its throughput"
                + (", which may be noise" if may_be else "")
                for name, may_be in optimal.items()
            ),
            tried="each table's default surely is not its best; by how much is not judged",
        ),
        Claim(
            '"and, under most settings, ranked lower than the top 40% configurations"',
            _most(low),
            f"surely on {low.count(Side.FOR)} of {len(tables)}, perhaps on "
            f"{low.count(Side.OPEN)} more: " + listed(better, " %"),
            "on more than half of the tables, more than 40 % are better than the default, whose "
            "noise the interval has",
        ),
        Claim(
            '"for most settings, throughput values vary across a wide range"',
            _most(wide),
            f"surely on {wide.count(Side.FOR)} of {len(tables)}, by the next row's figures",
            "on more than half of the tables the worst has less than half of the best's throughput",
        ),
        Claim(
            '"The ratios of the worst throughput to the best one are mostly between 0.2-0.4"',
            _most(usual),
            f"surely on {usual.count(Side.FOR)} of {len(tables)}: {listed(worst)}",
            "on more than half of the tables",
        ),
        some(
            '"In one extreme case, [...] the worst configuration only produces 1% I/O operations '
            'per unit time, compared with the global optimal one"',
            len(extreme),
            f"on {', '.join(extreme) or 'none'}; the figures are those above",
            tried="on some table the worst surely has no more than 1 %",
        ),
        untried(
            '"However, M2-Webserver-SSD shows a much narrower range of throughput, with the '
            "worst-to-best ratio close to 0.9. This is attributed mainly to the fact that "
            "Webserver consists of mostly sequential read operations that are processed similarly "
            'by different I/O stack configurations"',
            "no work here is like its Webserver",
        ),
        some(
            '"optimal configurations depend on [...] the running workload" (table 4)',
            len(different),
            f"{len(different) or 'none'} of {pairs} pairs "
            "([Robert 2019](robert2019.md#what-the-paper-claims))",
            tried=f"of `romio` under {len(patterns)} access patterns, some two have different "
            "best ones, surely, by the noise of four runs each",
        ),
        untried(
            '"optimal configurations depend on the specific hardware" (table 4), and on the '
            "software (abstract)",
            "one machine, one device and one kernel",
        ),
        *_applied(patterns),
    ]


def _between(of: Difference, bounds: tuple[float, float]) -> Side:
    """Of a claim that it lies between two bounds."""
    least, most = bounds
    if least <= of.low and of.high <= most:
        return Side.FOR
    return Side.AGAINST if of.high < least or of.low > most else Side.OPEN


def _applied(patterns: Sequence[Table]) -> list[Claim]:
    """What is the best of one pattern by its means, run under each other pattern."""
    moved = optima.applied(patterns)
    shares = [one.share for one in moved]
    surely = [one for one in moved if one.surely]
    harmed = [one for one in moved if one.harms]
    cases = "; ".join(f"{one.name} under {one.other} {one.share:.2f}" for one in surely)
    shown = (
        ". Measured by the best there, and not by the default, the row above shows it: in "
        f"{len(surely)} cases the best of another pattern surely is slower, with only "
        + " and ".join(f"{one.share:.2f}" for one in surely)
        + " of the throughput"
    )
    return [
        some(
            '"results from one environment cannot be directly applied in another" (4.1)',
            len(surely),
            f"in {len(surely)} of {len(moved)} cases"
            + (f" ({cases} of its throughput)" if surely else "")
            + f". By the means the share is {median(shares):.2f} in the median "
            f"({min(shares):.2f} to {max(shares):.2f})",
            tried=f"of {len(patterns)} access patterns of `romio`, the best of some one surely is "
            "slower under some other than the best there, by the noise of four runs each; "
            "cannot is read as: not always",
        ),
        some(
            '"One good configuration might perform poorly when the environment changes" (2.1)',
            len(harmed),
            f"in {len(harmed) or 'none'} of {len(moved)} cases; by the means in "
            f"{sum(one.worse for one in moved)}" + (shown if surely else ""),
            tried="the same, surely slower than the default there",
        ),
    ]


def _most(sides: Sequence[Side]) -> str:
    """The verdict on a claim of most settings."""
    if sides.count(Side.FOR) > len(sides) / 2:
        return HOLDS
    return NOT if sides.count(Side.AGAINST) >= len(sides) / 2 else UNDECIDED


def _not_linear(on: Table) -> dict[str, Difference]:
    """By journal option, throughput with blocks of 4K minus twice that of 2K."""
    found = {}
    for journal in ("journal", "ordered", "writeback"):
        fixed = {"journal": journal}
        large, small = _matched(
            on, {**fixed, "block_size": "4096"}, {**fixed, "block_size": "2048"}
        )
        found[f"data={journal}"] = paired(large, [TWICE * one for one in small])
    return found


def of_figure_9(systems: Systems) -> list[Claim]:
    """Ext3 by journal option and block size."""
    ext3 = systems.each["ext3"]
    return [
        above(
            '"configurations with data=ordered tend to produce higher throughput than those with '
            'data=journal" (figure 9: Ext3, File-SSD)',
            {size: _of_journals(ext3, "ordered", "journal", size) for size in SIZES},
            tried="with each block size, all else alike, throughput over the best's",
        ),
        above(
            '"and data=writeback produces the best throughput"',
            {size: _of_journals(ext3, "writeback", "ordered", size) for size in SIZES},
            tried="the same, than ordered",
        ),
        above(
            '"among journal configurations with data=writeback, those with a 4K Block Size turn '
            'out to produce the highest throughput"',
            {
                f"{large} - {small}": _of_sizes(ext3, large, small)
                for small, large in pairwise(SIZES)
            },
            tried="than with each next smaller size, all else alike",
        ),
        untried(
            "\"Ext3's more fault tolerant journal option (data=journal) may hurt throughput by "
            'writing data as well as meta-data to the journal first"',
            "what goes to the journal was not measured",
        ),
    ]


def _of_journals(on: Table, one: str, other: str, size: str) -> Difference:
    fixed = {"block_size": size}
    return paired(*_matched(on, {**fixed, "journal": one}, {**fixed, "journal": other}))


def _of_sizes(on: Table, one: str, other: str) -> Difference:
    fixed = {"journal": "writeback"}
    return paired(*_matched(on, {**fixed, "block_size": one}, {**fixed, "block_size": other}))


def _matched(
    on: Table, one: Mapping[str, str], other: Mapping[str, str]
) -> tuple[list[float], list[float]]:
    """Throughputs over the best's of what differs in nothing else."""
    names = [parameter.name for parameter in on.parameters]

    def under(wanted: Mapping[str, str]) -> dict[tuple[int, ...], float]:
        found = {}
        for point, time in zip(on.points, on.truths, strict=True):
            values = {
                parameter.name: str(parameter.values[level])
                for parameter, level in zip(on.parameters, point, strict=True)
            }
            if all(values[name] == value for name, value in wanted.items()):
                rest = tuple(
                    level for name, level in zip(names, point, strict=True) if name not in wanted
                )
                found[rest] = on.truths[on.best] / time
        return found

    first, second = under(one), under(other)
    both = sorted(first.keys() & second.keys())
    return [first[rest] for rest in both], [second[rest] for rest in both]


def of_table_5(tables: Sequence[Table], systems: Systems, patterns: Sequence[Table]) -> list[Claim]:
    """What matters, of which file system and under which work."""
    strongest = {name: file_systems.first_and_second(of) for name, of in systems.each.items()}
    told = {
        name: f"{file_systems.told(of)}, of {len(systems.each[name].points)} configurations"
        for name, of in strongest.items()
    }
    enough = [name for name, of in systems.each.items() if len(of.points) >= file_systems.ENOUGH]
    few = ", ".join(
        f"{name} has {len(of.points)}" for name, of in systems.each.items() if name not in enough
    )
    left_out = f"; {few}, fewer than {file_systems.ENOUGH}, which is our bound" if few else ""
    all_shares = {on.name: file_systems.importance(on) for on in tables}
    all_shares |= {name: file_systems.importance(systems.each[name]) for name in enough}
    strong = [name for name in enough if strongest[name][0][1] >= file_systems.SIGNIFICANT]
    of_patterns = [file_systems.first_and_second(on)[0] for on in patterns]

    def order(system: str) -> Claim:
        names = [parameter.name for parameter, _ in strongest[system]]
        return judged(
            f"of {system.capitalize()} the journal option matters most and the block size next "
            "(table 5: File-SSD)",
            {system: names == ["journal", "block_size"] and system in strong},
            told[system],
            tried="they have the highest R², the second with the first fixed, and the first more "
            "than 0.6",
        )

    together = {name: _second(systems.each[name]) for name in enough}
    dominant = {parameter.name for parameter, _ in strongest["xfs"]}
    of_xfs = [share for _, share in strongest["xfs"]]
    sure: dict[str, float] = {}
    for parameter, share in of_patterns:
        if share >= file_systems.SIGNIFICANT:
            sure[parameter.name] = max(share, sure.get(parameter.name, 0.0))
    return [
        judged(
            '"certain parameters would have a greater effect on system performance than others"',
            {name: max(of) > min(of) for name, of in all_shares.items()},
            ", ".join(
                f"{name} {max(of):.2f} and {max(min(of), 0.0):.2f}"
                for name, of in all_shares.items()
            ),
            tried="on each table, and of each file system, one parameter has a higher R² of "
            "throughput than another; the greatest and the least",
        ),
        judged(
            '"only a subset of them are highly correlated with performance"',
            {name: min(of) <= file_systems.SIGNIFICANT for name, of in all_shares.items()},
            "above 0.6 are "
            + ", ".join(
                f"{name} {sum(one > file_systems.SIGNIFICANT for one in of)} of {len(of)}"
                for name, of in all_shares.items()
            )
            + left_out,
            tried="nowhere do all parameters have an R² of throughput above 0.6",
        ),
        order("ext3"),
        order("ext4"),
        judged(
            '"the two dominant parameters for XFS under M2-Fileserver-SSD are Block Size and '
            'Allocation Group" (0.94 and 0.82 in table 5)',
            {
                "the two": dominant == XFS,
                "above 0.6": dominant == XFS and min(of_xfs) >= file_systems.SIGNIFICANT,
            },
            told["xfs"],
            tried="they have the two highest R², in whichever order; and both reach the paper's "
            "0.6; by how much is not judged",
        ),
        untried(
            '"all parameters for Btrfs come with low R² values, which indicates that no parameter '
            'has significant impact on system performance"',
            f"{told['btrfs']}, fewer than {file_systems.ENOUGH}, which is our bound",
        )
        if "btrfs" not in enough
        else judged(
            '"all parameters for Btrfs come with low R² values"',
            {"btrfs": "btrfs" not in strong},
            told["btrfs"],
            tried="none is above 0.6",
        ),
        untried(
            "of Ext2 the I/O scheduler alone matters; of Reiserfs the I/O scheduler and the "
            "journal option, of Nilfs2 the block size and the I/O scheduler (table 5: File-SSD)",
            "the scheduler is not varied, and this kernel has neither of the two",
        ),
        untried(
            "Db-SSD (table 5): of Ext3 the journal option (0.96) and the block size (0.72), of "
            "Ext4 the journal option (0.96) and the access time (0.68), of Nilfs2 the I/O "
            'scheduler and the block size, of Reiserfs the journal option; "all parameters for XFS '
            'seem to have minor impact", and so have those of Ext2 and Btrfs',
            "one work was measured on these file systems, in the manner of its file and mail "
            "servers; [both columns](#table-5-what-matters) stand beside what it gives",
        ),
        some(
            '"the correlated parameters are quite diverse, and depend a lot on file systems"',
            len({strongest[name][0][0].name for name in strong}) - 1 if strong else 0,
            "; ".join(f"{name}: {told[name]}" for name in enough) + left_out,
            tried="of some two file systems different parameters have the highest R², both above "
            "0.6",
        ),
        judged(
            '"assuming that their effect on throughput is independent" (4.4)',
            {name: fixed <= added for name, (_, _, added, fixed) in together.items()},
            "; ".join(
                f"{name}: {second} {max(alone, 0.0):.2f} alone, {max(added, 0.0):.2f} if effects "
                f"add up, {fixed:.2f} with the first fixed"
                for name, (second, alone, added, fixed) in together.items()
            ),
            tried="of each file system the second parameter has no higher R² with the first fixed "
            "than follows from its R² alone if effects only add up (its share of what the first "
            "leaves)",
        ),
        some(
            '"Correlation of parameters can also depend on the workloads"',
            len(sure) - 1 if sure else 0,
            "above 0.6, at the most: "
            + ", ".join(f"{name} {share:.2f}" for name, share in sorted(sure.items()))
            if sure
            else f"none is above 0.6; the highest is {max(one for _, one in of_patterns):.2f}",
            tried=f"the same of some two of {len(patterns)} access patterns of `romio`",
        ),
    ]


def _second(on: Table) -> tuple[str, float, float, float]:
    """The second parameter: its R² alone; of what the first leaves; and with the first fixed."""
    (_, share), (second, fixed) = file_systems.first_and_second(on)
    place = [parameter.name for parameter in on.parameters].index(second.name)
    alone = file_systems.importance(on)[place]
    return second.name, alone, alone / (1.0 - share) if share < 1.0 else 1.0, fixed


def of_the_conclusion(tables: Sequence[Table]) -> list[Claim]:
    """Section 7 on linear regression."""
    linear = {on.name: predicted_best(on) for on in tables}
    return [
        judged(
            '"many of those parameters are non-linear or non-numeric; traditional '
            'linear-regression-based optimization techniques do not work well for such problems" '
            "(section 7)",
            {name: on_best <= NEAR_OPTIMAL for name, on_best in linear.items()},
            ", ".join(f"{name} {on_best:.2f}" for name, on_best in linear.items()),
            tried="a linear regression of throughput on the parameters' levels (a category's "
            "values each apart), fitted to all of the table: what it predicts to be the best is "
            "not near-optimal; its throughput over the best's. The sentence is of optimization "
            "techniques based on linear regression, none of which the paper runs: what is tried "
            "here is only the fit that such a technique would rest on",
        ),
        untried(
            'control theory "tends to be unstable in controlling non-linear systems", "cannot '
            'handle non-numeric parameters" and "requires a lot of data"; of supervised learning '
            'training data is "not available or impossible to collect for large parameter spaces '
            'such as ours" (section 2.3)',
            "argued, partly from the literature; neither the paper nor this project runs either",
        ),
    ]


def predicted_best(on: Table) -> float:
    """The throughput of what a linear regression has as the best, over that of the best."""
    columns = [np.ones(len(on.points))]
    for place, parameter in enumerate(on.parameters):
        levels = np.array([float(point[place]) for point in on.points])
        if parameter.ordered:
            columns.append(levels)
        else:
            columns += [(levels == value).astype(float) for value in range(1, parameter.levels)]
    throughput = np.array([1.0 / time for time in on.truths])
    design = np.column_stack(columns)
    weights, *_ = np.linalg.lstsq(design, throughput, rcond=None)
    return float(throughput[int(np.argmax(design @ weights))] / throughput.max())
