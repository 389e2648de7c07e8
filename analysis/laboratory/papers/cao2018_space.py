"""Cao 2018: its sentences on the space itself, by figures 3 and 9 and tables 4 and 5."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from statistics import median

from peers.tables import Parameter, Table

from papers import file_systems, optima
from papers.cao2018_replays import near_optimal
from papers.claims import (
    HOLDS,
    NOT,
    UNDECIDED,
    UNTRIED,
    Claim,
    Difference,
    Side,
    above,
    judged,
    listed,
    paired,
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
ENOUGH = 10
"""Configurations of a file system, of whose parameters an R² tells something: our bound."""
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


def of_the_space(
    tables: Sequence[Table], systems: Systems, patterns: Sequence[Table]
) -> list[Claim]:
    """Section 2.1, figure 3, table 4."""
    better = {on.name: optima.better(on) for on in tables}
    gains = {on.name: on.truths[on.default] / on.truths[on.best] for on in tables}
    worst = {on.name: on.truths[on.best] / max(on.truths) for on in tables}
    peaks = {on.name: optima.peaks(on) for on in tables}
    optimal = {on.name: on.default in optima.candidates(on) for on in tables}
    different = optima.surely_different(patterns)
    pairs = len(list(combinations(patterns, 2)))
    low = [share.side(1, TOP) for share in better.values()]
    usual = [name for name, share in worst.items() if USUAL[0] <= share <= USUAL[1]]
    not_linear = _not_linear(systems.each["ext3"])
    extreme = [name for name, share in worst.items() if share <= EXTREME]
    wide = [name for name, share in worst.items() if share < WIDE]
    return [
        judged(
            "a system is not linear: its output is not proportional to a parameter (figure 1: "
            "GPFS's latency to its pagepool), here Ext3's throughput to its block size",
            {name: of.side(1) is not Side.OPEN or Side.OPEN for name, of in not_linear.items()},
            "throughput less what twice the block size would make of it, over the best's: "
            + listed(not_linear),
        ),
        judged(
            "a storage space is often sparse, irregular, and contains multiple peaks: of this we "
            "try the peaks",
            {name: True if count > 1 else Side.OPEN for name, count in peaks.items()},
            "parametrizations that surely are faster than every one that differs in one parameter "
            "(95 % over all of a table): "
            + ", ".join(f"{name} {count}" for name, count in peaks.items()),
        ),
        judged(
            "default Ext4 configurations, here each table's default, are always sub-optimal "
            "(figure 3; by 2.5 times on M1-Mailserver-HDD1)",
            {name: Side.OPEN if may_be else True for name, may_be in optimal.items()},
            "; ".join(
                f"{name}: the best has {gains[name]:.2f} times its throughput"
                + (", which may be noise" if may_be else "")
                for name, may_be in optimal.items()
            ),
        ),
        Claim(
            "and are ranked lower than the top 40 % under most settings",
            _most(low),
            f"surely on {low.count(Side.FOR)} of {len(tables)}, perhaps on "
            f"{low.count(Side.OPEN)} more; better than the default, by its noise: "
            + listed(better, " %"),
        ),
        Claim(
            "for most settings throughput varies across a wide range: the worst has less than half "
            "of the best's, which is our bound",
            HOLDS if len(wide) > len(tables) / 2 else NOT,
            f"on {len(wide)} of {len(tables)}, by the next row's shares",
        ),
        Claim(
            "the worst has mostly 0.2 to 0.4 of the best's",
            HOLDS if len(usual) > len(tables) / 2 else NOT,
            f"on {len(usual)} of {len(tables)}: "
            + ", ".join(f"{name} {share:.2g}" for name, share in worst.items()),
        ),
        Claim(
            "in one extreme case (M2-Fileserver-HDD3) the worst has 1 %",
            HOLDS if extreme else NOT,
            f"no more than that on {', '.join(extreme) or 'none'}",
        ),
        Claim(
            "where reads are mostly sequential the range is narrower (M2-Webserver-SSD: close to "
            "0.9)",
            UNTRIED,
            "no work here is like its Webserver",
        ),
        Claim(
            "the optimal configuration depends on the workload (table 4)",
            HOLDS if different else UNDECIDED,
            f"`romio` under {len(patterns)} access patterns: {len(different) or 'none'} of {pairs} "
            "pairs surely differ, by the noise of four runs each "
            "([Robert 2019](robert2019.md#what-the-paper-claims))",
        ),
        Claim(
            "and on the hardware (table 4) and the software (abstract)",
            UNTRIED,
            "one machine, one device and one kernel",
        ),
        _applied(patterns),
    ]


def _applied(patterns: Sequence[Table]) -> Claim:
    """What is the best of one pattern by its means, run under each other pattern."""
    moved = optima.applied(patterns)
    shares = [one.share for one in moved]
    surely = [one for one in moved if one.surely]
    told = "; ".join(f"{one.name} under {one.other} {one.share:.2f}" for one in surely)
    return Claim(
        "results from one environment cannot be directly applied in another (4.1), where a good "
        "configuration might perform poorly (2.1)",
        UNDECIDED,
        f"the best of each of {len(patterns)} access patterns of `romio` has, under the others, "
        f"{median(shares):.2f} of their best's throughput in the median ({min(shares):.2f} to "
        f"{max(shares):.2f}), and less than their default in {sum(one.worse for one in moved)} of "
        f"{len(moved)} cases. But by the noise of four runs each it surely is slower than their "
        f"best in {len(surely)} alone"
        + (f" ({told})" if surely else "")
        + ", and surely slower than their default in none" * (not any(one.harms for one in moved)),
    )


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
            "of Ext3 writeback is before ordered (figure 9: File-SSD), throughput over the best's",
            {size: _of_journals(ext3, "writeback", "ordered", size) for size in SIZES},
        ),
        above(
            "and ordered before journal",
            {size: _of_journals(ext3, "ordered", "journal", size) for size in SIZES},
        ),
        above(
            "with writeback blocks of 4K have the highest throughput",
            {
                f"{large} - {small}": _of_sizes(ext3, large, small)
                for small, large in pairwise(SIZES)
            },
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
    enough = [name for name, of in systems.each.items() if len(of.points) >= ENOUGH]
    few = ", ".join(
        f"{name} has {len(of.points)}" for name, of in systems.each.items() if name not in enough
    )
    left_out = f"; {few}, too few to tell" if few else ""
    strong = {
        name: strongest[name][0][0].name
        for name in enough
        if strongest[name][0][1] >= file_systems.SIGNIFICANT
    }
    firsts = {on.name: file_systems.first_and_second(on)[0] for on in tables}
    of_patterns = [file_systems.first_and_second(on)[0] for on in patterns]
    strong_patterns = {
        parameter.name for parameter, share in of_patterns if share >= file_systems.SIGNIFICANT
    }

    def order(system: str) -> Claim:
        names = [parameter.name for parameter, _ in strongest[system]]
        holds = names == ["journal", "block_size"] and system in strong
        return Claim(
            f"of {system.capitalize()} the journal option and the block size matter most, in this "
            "order (table 5: File-SSD)",
            HOLDS if holds else NOT,
            told[system],
        )

    whole = [name for name, (_, of) in firsts.items() if of >= file_systems.SIGNIFICANT]
    right = {name: _with_the_right_values(systems.each[name]) for name in ("ext3", "ext4")}
    return [
        Claim(
            "a subset of the parameters is highly correlated with performance: R² of one above "
            "0.6, in 10 of the 14 rows of table 5, each of one file system",
            HOLDS if len(strong) == len(enough) else UNDECIDED if strong else NOT,
            f"of {len(strong)} of {len(enough)} file systems ({', '.join(strong) or 'none'})"
            f"{left_out}; of how many the paper's sentence is, it does not say; of whole "
            f"tables, which the paper does not try, on {len(whole)} of {len(firsts)}: "
            + ", ".join(
                f"{name}: {parameter.name} {share:.2f}"
                for name, (parameter, share) in firsts.items()
            ),
        ),
        Claim(
            "as long as an algorithm has the right values of these, it will be able to find a "
            "near-optimal configuration",
            UNDECIDED,
            "no method was held to these values, and how soon is not said. Near-optimal, of those "
            "with the best's values of the two that matter most: "
            + "; ".join(
                f"{name} {near} of {of} (of all {every} of {all_})"
                for name, (near, of, every, all_) in right.items()
            ),
        ),
        order("ext3"),
        order("ext4"),
        Claim(
            "of XFS the block size and the allocation groups are the two dominant parameters "
            "(File-SSD), whose order the text does not have",
            _two_dominant(strongest["xfs"], XFS),
            f"{told['xfs']}: the same two are the highest, but not above 0.6, as they are in the "
            "paper's File-SSD, and none is in its Db-SSD"
            if _two_dominant(strongest["xfs"], XFS) == UNDECIDED
            else told["xfs"],
        ),
        Claim(
            "of Btrfs no parameter has a significant impact",
            UNDECIDED if "btrfs" not in enough else NOT if "btrfs" in strong else HOLDS,
            f"{told['btrfs']}" + ("" if "btrfs" in enough else ", too few to tell"),
        ),
        Claim(
            "of Ext2 the I/O scheduler alone; of Nilfs2 and Reiserfs others",
            UNTRIED,
            "the scheduler is not varied, and this kernel has neither of the two",
        ),
        Claim(
            "the parameters that matter depend on the file system",
            HOLDS
            if len(set(strong.values())) > 1
            else UNDECIDED
            if len(strong) < len(enough)
            else NOT,
            "; ".join(f"{name}: {told[name]}" for name in enough)
            + left_out
            + (
                f". Above 0.6 {' and '.join(strong)} have the same, {first}, and the others none"
                if len({*strong.values()}) == 1 and (first := next(iter(strong.values())))
                else ""
            ),
        ),
        Claim(
            "and on the workload",
            HOLDS if len(strong_patterns) > 1 else UNDECIDED,
            f"`romio` under {len(patterns)} access patterns: "
            + (
                f"above 0.6 {', '.join(sorted(strong_patterns))}"
                if strong_patterns
                else f"none is above 0.6; the highest is {max(one for _, one in of_patterns):.2f}"
            ),
        ),
    ]


def _two_dominant(found: Sequence[tuple[Parameter, float]], wanted: frozenset[str]) -> str:
    """The same two, but below the paper's bound, decides nothing."""
    if {parameter.name for parameter, _ in found} != wanted:
        return NOT
    return HOLDS if min(share for _, share in found) >= file_systems.SIGNIFICANT else UNDECIDED


def _with_the_right_values(on: Table) -> tuple[int, int, int, int]:
    """With the best's values of what matters: how many are near-optimal of how many; of all."""
    names = [parameter.name for parameter in on.parameters]
    places = [names.index(of.name) for of, _ in file_systems.first_and_second(on)]
    close = near_optimal(on)
    some = [
        nth
        for nth, point in enumerate(on.points)
        if all(point[place] == on.points[on.best][place] for place in places)
    ]
    return len(close.intersection(some)), len(some), len(close), len(on.points)
