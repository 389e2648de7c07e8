"""Cao 2018: its sentences, by differences over studies that begin with the same seeds."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import inf
from statistics import fmean

from peers.tables import Table

from papers import cao2018_rates, cao2018_space, file_systems
from papers.cao2018_rates import Rates
from papers.cao2018_replays import (
    LONG,
    Replayed,
    best_of,
    compared,
    differences,
    near_optimal,
    share_differences,
    shares,
    surely_more,
)
from papers.claims import (
    UNDECIDED,
    UNTRIED,
    Claim,
    Difference,
    Side,
    above,
    alike,
    below,
    judged,
    listed,
    paired,
    proven,
    share,
    shares_apart,
    some,
    untried,
    with_readings,
)

METHODS = ("SA", "GA", "DQN", "BO", "RS")
OTHERS = ("SA", "DQN", "RS")
"""What GA and BO are compared with."""
HOUR = 20
"""In runs of the default, of which the paper's five hours are about a hundred."""
TIMES = (5, 10, 20, 40, 80)
"""In runs of the default."""
HALF, MOST, FEW = 50.0, 90.0, 40.0
"""Of studies, %: most, "over 90 %" and "lower than 40 %"."""
ABOUT_SA, ABOUT_BEST = 80.0, 65.0
"""Of studies, %: what the paper tells of SA, and of GA and BO where 0.2 % are near-optimal."""
STUCK = 0.96
"""Of the best throughput: 18 of 18.7."""
ALIKE, ALIKE_FOUND = 0.05, 10.0
"""Our bounds for what is alike: of throughput over the best's, and of studies, %."""
GENERATION, SETTLED = 8, (0, 8)
"""Members, and the generations between which genes settle: figure 8's first and our ninth."""
MAIL = "one of the best 4.5 %"
FILES = "one above 99 % of the best"


def claims(
    replayed: Sequence[Replayed],
    rates: Rates,
    systems: cao2018_space.Systems,
    patterns: Sequence[Table],
) -> list[Claim]:
    """In the paper's order."""
    tables = [of.on for of in replayed]
    by_runs = [Replayed(of.on, of.methods, by_runs=True) for of in replayed]
    return [
        *cao2018_space.of_the_space(tables, systems, patterns),
        *_of_the_methods(),
        _purged(replayed),
        *_timed(_of_figure_4(replayed), _of_figure_4(by_runs)),
        *_timed(_of_figure_5(replayed, systems), _of_figure_5(by_runs, systems)),
        *_of_figure_6(replayed),
        *cao2018_rates.claims(rates),
        *_of_figure_8(replayed, systems),
        *cao2018_space.of_figure_9(systems),
        *cao2018_space.of_table_5(tables, systems, patterns),
        *_of_the_reasons(replayed),
        *cao2018_space.of_the_conclusion(tables),
        *_timed(_of_speed(replayed), _of_speed(by_runs)),
        untried(
            '"We focused on optimizing for throughput, but our methodology and observations are '
            'applicable to other metrics as well"',
            "the paper tunes for throughput alone; energy is not measured here; "
            "[other objectives](../engine.md#the-objective)",
        ),
    ]


def _timed(by_time: Sequence[Claim], by_runs: Sequence[Claim]) -> list[Claim]:
    """Claims by elapsed time, beside what equal runs say; where these differ nothing is decided.

    The paper's runs are equally long but for their setup, so that its time is nearly its runs.
    """
    return [
        one if one == other or one.verdict == UNTRIED else _both_ways(one, other)
        for one, other in zip(by_time, by_runs, strict=True)
    ]


def _both_ways(by_time: Claim, by_runs: Claim) -> Claim:
    told = f"{by_time.figure}. At equal runs: {by_runs.verdict}"
    if by_time.verdict.split(" (")[0] == by_runs.verdict.split(" (")[0]:
        return replace(by_time, figure=told)
    if by_time.verdict.startswith(UNDECIDED):
        return replace(by_time, figure=told)
    return replace(by_time, verdict=UNDECIDED, figure=f"at equal time: {by_time.verdict}: {told}")


def _of_the_methods() -> list[Claim]:
    """Sections 2.2, 3 and 4.2."""
    return [
        proven(
            '"Neighbors of a state refer to new configurations achieved by altering only one '
            'parameter value of the current state" (2.2, of SA)',
            "`cao2018_ii_2_a_neighbour_differs_in_one_parameter`",
        ),
        proven(
            'two parents "are cut at the same crossover point, and then the subparts after the '
            'crossover point are exchanged between them" (2.2, of GA)',
            "`cao2018_ii_2_the_subparts_after_one_cut_are_exchanged`",
        ),
        proven(
            '"rewards are differences in evaluation results" (2.2, of DQN)',
            "`cao2018_ii_2_rewards_are_differences_in_results`",
            tried="the difference of the logarithms of two times, over the standard deviation of "
            "all that are known",
        ),
        proven(
            '"both linear and geometric cooling schedules" (3, of SA)',
            "`cao2018_iii_linear_and_geometric_cooling_by_hand`",
            tried="temperatures by hand; the replays' cooling is linear, as in 4.2",
        ),
        proven(
            'of DQN 0.2 "represents the probability of an agent taking random actions" (4.2)',
            "`cao2018_iv_2_a_fifth_of_the_actions_is_random`",
        ),
    ]


def _purged(replayed: Sequence[Replayed]) -> Claim:
    """Of what is run the share is known; of what a method keeps nothing is."""
    [systems] = [of for of in replayed if of.on.name == file_systems.NAME]
    ends = {name: systems.invalid(name) for name in METHODS if name != "RS"}
    claim = below(
        '"Invalid configurations will always come with evaluation results of zero [...]; this '
        'ensures they are purged in an upcoming optimization process"',
        {name: paired(last, first) for name, (first, last) in ends.items()},
        tried="file-systems, where with every method they count as twice the slowest instead: of "
        "the last eighth of the runs fewer are invalid than of the first, percentage points. With "
        "zero, as in the paper, no method is tried: BO, for one, models logarithms, and zero has "
        "none",
    )
    return replace(
        claim,
        figure=claim.figure
        + "; of the first and the last eighth: "
        + ", ".join(
            f"{name} {fmean(first):.0f} and {fmean(last):.0f} %"
            for name, (first, last) in ends.items()
        ),
    )


def _easily(of: Replayed, name: str) -> list[float]:
    return of.found(name, best_of(of.on), of.horizon)


def _in_an_hour(of: Replayed, name: str) -> list[float]:
    return of.found(name, best_of(of.on), HOUR)


def _hardly(of: Replayed, name: str) -> list[float]:
    return of.found(name, near_optimal(of.on), of.horizon)


def _of_figure_4(replayed: Sequence[Replayed]) -> list[Claim]:
    best = [(one, other) for one in ("GA", "BO") for other in OTHERS]
    hourly, note = _lasting(replayed, HOUR)
    long, long_note = _lasting(replayed, LONG)
    return [
        above(
            '"all five methods were able to gradually find higher performing configurations" '
            "(figure 4: one study)",
            {
                f"{of.on.name}, {name}": share(sum(found), len(found))
                for of in replayed
                for name in METHODS
                for found in [of.higher(name)]
            },
            " %",
            bound=HALF,
            tried="more than 50 % of the studies run what is faster than the default, and on "
            "file-systems than the best of the defaults that the method begins with",
        ),
        _differing(replayed),
        _noted(
            above(
                '"SA performed the worst" (figure 4)',
                differences(
                    long,
                    lambda of, name: of.gain_by(name, of.horizon),
                    *((one, "SA") for one in METHODS if one != "SA"),
                ),
                tried="the throughput of the best that each other method has found, over the "
                "default's in %, is above SA's, at equal time, percentage points",
            ),
            long_note,
        ),
        _noted(_got_stuck(long), long_note),
        _noted(
            above(
                'GA and BO "both successfully identified a near-optimal configuration within one '
                'hour" (figure 4)',
                shares(hourly, _in_an_hour, ("GA", "BO")),
                " %",
                bound=HALF,
                tried=f"more than 50 % of their studies run {MAIL} by t = {HOUR}",
            ),
            note,
        ),
        _noted(
            above(
                '"GA and BO performed best out of these five tested optimization methods" (figure '
                "4)",
                share_differences(hourly, _in_an_hour, *best),
                tried=f"by t = {HOUR} more of their studies than of SA's, DQN's and RS's have run "
                f"{MAIL}, percentage points",
            ),
            note,
        ),
        _noted(
            above(
                'DQN "was able to converge to a good configuration" (figure 4)',
                shares(long, _easily, ("DQN",)),
                " %",
                bound=HALF,
                tried=f"more than 50 % of its studies run {MAIL} at equal time",
            ),
            long_note,
        ),
        _noted(
            above(
                'DQN "spent more time to achieve that than RS" (figure 4)',
                share_differences(hourly, _in_an_hour, ("RS", "DQN")),
                tried=f"by t = {HOUR} more of RS's studies than of DQN's have run {MAIL}, "
                "percentage points",
            ),
            note,
        ),
        _noted(_random_is_better(long), long_note),
        _noted(_since_many_are_near(long), long_note),
        below(
            '"GA and BO outperformed SA and DQN on our parameter spaces, both in terms of '
            'convergence time" and throughput, which is below (section 1)',
            differences(
                replayed,
                lambda of, name: of.until(name, best_of(of.on), of.horizon),
                *((one, other) for one in ("GA", "BO") for other in ("SA", "DQN")),
            ),
            tried=f"the time until {MAIL}, at equal time, in runs of the default, is less",
        ),
    ]


def _got_stuck(replayed: Sequence[Replayed]) -> Claim:
    """By the share of the best throughput, since throughputs are the paper's system's own."""
    low = {}
    for of in replayed:
        most = of.on.truths[of.on.default] / of.on.truths[of.on.best]
        found = [(1.0 + gain / 100.0) / most for gain in of.gain_by("SA", of.horizon)]
        low[of.on.name] = share(sum(one <= STUCK for one in found), len(found))
    return above(
        'SA "got stuck in a configuration with throughput value of less than 18K IOps" (figure 4, '
        "where the default has 15.2 and the best 18.7)",
        low,
        " %",
        bound=HALF,
        tried="more than 50 % of its studies have found no more than 96 % of the best throughput "
        "at equal time, which 18 is of 18.7; one that is stuck is not told from one that is slow",
    )


def _lasting(replayed: Sequence[Replayed], time: float) -> tuple[list[Replayed], str]:
    """The tables on which studies last so long, and a word on the others."""
    short = [of.on.name for of in replayed if of.horizon < time]
    note = f"On {', '.join(short)} the studies end too soon" if short else ""
    return [of for of in replayed if of.horizon >= time], note


def _differing(replayed: Sequence[Replayed]) -> Claim:
    """At 5 % over all pairs of methods."""
    pairs = len(list(combinations(METHODS, 2)))
    sides: dict[str, Side | bool] = {}
    figures = []
    for of in replayed:
        ranked = sorted(
            ((_hardly(of, name), name) for name in METHODS),
            key=lambda one: fmean(one[0]),
            reverse=True,
        )
        # The farthest apart first, and these if no pair is sure.
        apart = sorted(
            combinations(ranked, 2),
            key=lambda pair: fmean(pair[0][0]) - fmean(pair[1][0]),
            reverse=True,
        )
        sure = [pair for pair in apart if surely_more(pair[0][0], pair[1][0], pairs)]
        more, less = (sure or apart)[0]
        sides[of.on.name] = bool(sure) or Side.OPEN
        figures.append(
            f"{of.on.name}: {more[1]} {fmean(more[0]):.0f}, {less[1]} {fmean(less[0]):.0f} %"
        )
    return judged(
        '"but their effectiveness and speed differed a lot" (figure 4); "the efficacy of different '
        'optimization algorithms vary a lot" (end of 4.2)',
        sides,
        "; ".join(figures),
        tried=f"on every table, of some method surely more studies than of another have run "
        f"{FILES}, at equal time; how much is a lot is not judged",
    )


def _beaten_by_random(
    of: Replayed, found: Callable[[Replayed, str], list[float]]
) -> tuple[list[str], bool]:
    """What random search surely is before, and whether all surely are before it; 5 % over all."""
    others = [name for name in METHODS if name != "RS"]
    hits = {name: found(of, name) for name in METHODS}
    return (
        [name for name in others if surely_more(hits["RS"], hits[name], len(others))],
        all(surely_more(hits[name], hits["RS"], len(others)) for name in others),
    )


def _random_is_better(replayed: Sequence[Replayed]) -> Claim:
    behind = {of.on.name: _beaten_by_random(of, _easily) for of in replayed}
    return judged(
        '"pure Random Search (RS) produced better results than some other optimization methods" '
        "(figure 4)",
        {
            name: True if names else Side.AGAINST if last else Side.OPEN
            for name, (names, last) in behind.items()
        },
        "; ".join(
            f"{name}: than {', '.join(names) or 'none surely'}"
            for name, (names, _) in behind.items()
        ),
        tried=f"on every table, more of its studies than of some other method run {MAIL}, surely, "
        "at equal time",
    )


def _since_many_are_near(replayed: Sequence[Replayed]) -> Claim:
    def only_easily(of: Replayed, name: str) -> list[float]:
        """What has run one of the few has run one of the many."""
        both = zip(_easily(of, name), _hardly(of, name), strict=True)
        return [often - seldom for often, seldom in both]

    pairs = [("RS", name) for name in METHODS if name != "RS"]
    easily = share_differences(replayed, _easily, *pairs)
    explained = share_differences(replayed, only_easily, *pairs)
    claim = above(
        '"the reason is that [...] 4.5% of total configurations are near-optimal. RS needs only to '
        'hit one of them"',
        explained,
        tried=f"by how much more of RS's studies than of each other method's run {MAIL} at equal "
        f"time, less the same of {FILES}, of which there are fewer; percentage points",
    )
    nothing_to_explain = "".join(
        f"; against it is {name}, where RS runs {MAIL} no more often than {name.split(' - ')[1]}: "
        f"{easily[name].told()}"
        for name, of in explained.items()
        if of.side(1) is Side.AGAINST and easily[name].side(1) is not Side.FOR
    )
    return replace(claim, figure=claim.figure + nothing_to_explain)


def _of_figure_5(replayed: Sequence[Replayed], systems: cao2018_space.Systems) -> list[Claim]:
    long, note = _lasting(replayed, LONG)
    place = [parameter.name for parameter in systems.table.parameters].index(file_systems.SYSTEM)
    best = systems.table.points[systems.table.best][place]
    part = 100.0 * fmean(point[place] == best for point in systems.table.points)
    name = systems.table.parameters[place].values[best]
    many = f"more studies run {MAIL} at equal time, percentage points"
    few = f"more studies run {FILES} at equal time, percentage points"
    return [
        _noted(
            above(
                'M2-Mailserver-HDD3: "SA had the lowest probability among 5 algorithms"',
                share_differences(long, _easily, *((one, "SA") for one in METHODS if one != "SA")),
                tried=f"of each other method {many}",
            ),
            note,
        ),
        _noted(
            alike(
                '"Even after 5 hours, only around 80% of its runs found one near-optimal '
                'configuration"',
                _off(shares(long, _easily, ("SA",)), ABOUT_SA),
                ALIKE_FOUND,
                " points",
                tried=f"the share of its studies that run {MAIL} at equal time is within 10 points "
                "of 80 %; by how much it is off",
            ),
            note,
        ),
        _stuck(replayed),
        _noted(
            above(
                '"For other optimization methods, given enough time, over 90% of their runs '
                'converged to a near-optimal configuration"',
                shares(long, _easily, [one for one in METHODS if one != "SA"]),
                " %",
                bound=MOST,
                tried=f"so many of their studies run {MAIL} at equal time",
            ),
            note,
        ),
        _noted(
            above(
                '"with BO outperforming GA, and GA outperforming DQN"',
                share_differences(long, _easily, ("BO", "GA"), ("GA", "DQN")),
                tried=many,
            ),
            note,
        ),
        _noted(
            above(
                '"RS shows the highest probability of finding near-optimal configurations when '
                'approaching 5 hours"',
                share_differences(long, _easily, *(("RS", one) for one in METHODS if one != "RS")),
                tried=f"than of each other method {many}",
            ),
            note,
        ),
        _more_difficult(replayed),
        _noted(
            above(
                'M2-Fileserver-HDD3: "GA and BO are still the best", here GA',
                share_differences(long, _hardly, *(("GA", one) for one in OTHERS)),
                tried=f"than of SA, DQN and RS {few}",
            ),
            note,
        ),
        _noted(
            above(
                "the same, here BO",
                share_differences(long, _hardly, *(("BO", one) for one in OTHERS)),
                tried=f"than of SA, DQN and RS {few}",
            ),
            note,
        ),
        _noted(
            alike(
                '"though only 65% of their runs were able to find near-optimal configurations '
                'within 5 hours"',
                _off(shares(long, _hardly, ("GA", "BO")), ABOUT_BEST),
                ALIKE_FOUND,
                " points",
                tried=f"the share of their studies that run {FILES} at equal time is within 10 "
                "points of 65 %; by how much it is off",
            ),
            note,
        ),
        _noted(
            below(
                '"SA, RS, and DQN have a probability of lower than 40% to do so"',
                shares(long, _hardly, OTHERS),
                " %",
                bound=FEW,
                tried=f"so many of their studies run {FILES} at equal time",
            ),
            note,
        ),
        _noted(
            above(
                '"with DQN perform the worst"',
                share_differences(
                    long, _hardly, *((one, "DQN") for one in METHODS if one != "DQN")
                ),
                tried=f"of each other method {few}",
            ),
            note,
        ),
        untried(
            'this is "because the global optimum under M2-Fileserver-HDD3 is a Btrfs '
            'configuration": "few Btrfs configurations reside in the neighborhood of the default '
            'Ext4 configurations", and "fewer than 2% of all valid configurations are Btrfs ones"',
            f"the best here is of {name}, which {part:.0f} % of the valid ones are; of the valid "
            f"neighbours of ext4's default {_neighbours(systems.table, place, str(name))}. There "
            "is no other table of file systems to compare with",
        ),
    ]


def _neighbours(on: Table, place: int, best: str) -> str:
    """Of what file systems the default's neighbours are."""
    default = on.points[on.default]
    near = Counter(
        str(on.parameters[place].values[point[place]])
        for point in on.points
        if sum(a != b for a, b in zip(default, point, strict=True)) == 1
    )
    told = [
        f"{count} {'is' if count == 1 else 'are'} {name}'s" for name, count in near.most_common()
    ]
    return ", ".join([*told, *([] if best in near else [f"none is {best}'s"])])


def _more_difficult(replayed: Sequence[Replayed]) -> Claim:
    """Between tables, since of one table whoever finds the few has found the many too."""
    shared = {of.on.name: 100.0 * len(near_optimal(of.on)) / len(of.on.points) for of in replayed}
    long, note = _lasting(replayed, LONG)
    found = {}
    for one, other in combinations(long, 2):
        many, few = sorted((one, other), key=lambda of: -shared[of.on.name])
        for name in METHODS:
            hits = [of.found(name, near_optimal(of.on), LONG) for of in (many, few)]
            found[f"{many.on.name} - {few.on.name}, {name}"] = shares_apart(hits[0], hits[1])
    claim = above(
        'M2-Fileserver-HDD3 (there misprinted M3-): "it becomes more difficult to find '
        'near-optimal configurations", for '
        '"only 0.2% of all configurations are considered near-optimal, compared with 4.5%"',
        found,
        tried=f"for each pair of tables and each method: more studies run {FILES} by "
        f"t = {LONG:.0f} on the table with the larger near-optimal share; percentage points",
    )
    told = ", ".join(f"{of.on.name} {shared[of.on.name]:.2g} %" for of in long)
    return _noted(replace(claim, figure=f"{claim.figure}. Near-optimal are of {told}"), note)


def _stuck(replayed: Sequence[Replayed]) -> Claim:
    missed = {of.on.name: 100.0 - fmean(of.found("SA", best_of(of.on), inf)) for of in replayed}
    return untried(
        '"which shows that SA sometimes gets stuck in a local optimum"',
        "where annealing stands is not recorded, so that a study that is stuck cannot be told "
        "from one that is slow; nor is a local optimum sure on any table, by the row on peaks. Of "
        "its studies so many never run one of the best 4.5 %: "
        + ", ".join(f"{name} {share:.0f} %" for name, share in missed.items()),
    )


def _off(of: Mapping[str, Difference], told: float) -> dict[str, Difference]:
    """How far shares are from what the paper tells."""
    return {
        name: Difference(one.mean - told, one.low - told, one.high - told)
        for name, one in of.items()
    }


def _of_figure_6(replayed: Sequence[Replayed]) -> list[Claim]:
    # All methods as they were replayed: what is invalid is left out.
    def pairs(
        *names: tuple[str, str],
        figure: Callable[[Replayed, str], list[float]] = Replayed.throughput,
    ) -> dict[str, Difference]:
        return {
            f"{of.on.name}, {one} - {other}": compared(figure(of, one), figure(of, other))
            for of in replayed
            for one, other in names
        }

    bayesian = [("BO", other) for other in OTHERS]
    return [
        above(
            '"BO and GA are still the best two methods in terms of instantaneous throughput" '
            "(figure 6: one study)",
            pairs(*((one, other) for one in ("GA", "BO") for other in OTHERS)),
            tried="the mean throughput of a study's runs, over the best's, is above SA's, DQN's "
            "and RS's",
        ),
        above(
            '"In contrast, SA performs poorly"',
            pairs(("GA", "SA"), ("BO", "SA")),
            tried="of these, GA's and BO's above SA's",
        ),
        below(
            '"occasionally they pick a worse configuration than the current one. However, they '
            'both possess the ability to [...] discard these unpromising configurations"',
            {
                f"{of.on.name}, {one} - RS": compared(of.stays_bad(one), of.stays_bad("RS"))
                for of in replayed
                for one in ("BO", "GA")
            },
            tried="after a run that is slower than the table's median, which is our bound of "
            "worse, the next one is so less often than in RS, percentage points; how quickly they "
            'discard them is not tried, and "occasionally" is not judged',
        ),
        proven(
            '"GA achieves this by assigning the probability of surviving to next generation based '
            'on the fitness values": those "with low throughput values have a lower chance to be '
            'picked as parents"',
            "`cao2018_iv_2_low_throughput_has_a_lower_chance_to_be_picked_as_a_parent`; that this "
            "is why it discards them is not tried",
            tried="the probability of being picked; how genes fare is in the rows on figure 8",
        ),
        below(
            '"stable instantaneous throughputs with BO"',
            pairs(*bayesian, figure=Replayed.varying),
            tried="a standard deviation of its throughputs, over the best's, is below SA's, DQN's "
            "and RS's: by the differences between a run and the next, so that what a study gains "
            "on its way hardly counts",
        ),
        below(
            '"this makes BO less likely to choose a bad configuration"',
            pairs(*bayesian, figure=Replayed.bad),
            tried="fewer of its runs than of SA's, DQN's and RS's are slower than the table's "
            "median, which is our bound of bad, percentage points",
        ),
        untried(
            'the reason is that BO "uses an intelligent acquisition function to guide the '
            'selection"; SA performs poorly "possibly because it lacks a history"; DQN is as RS, '
            '"likely" because it "was originally designed as an agent interacting with an unknown '
            'environment"',
            "no method was run without what it is said to owe its results to, in the paper or here",
        ),
        alike(
            '"DQN shows similar results with RS"',
            pairs(("DQN", "RS")),
            ALIKE,
            tried="the mean throughput of a study's runs, over the best's, differs by less than "
            "0.05",
        ),
    ]


def _of_figure_8(replayed: Sequence[Replayed], systems: cao2018_space.Systems) -> list[Claim]:
    def all_settle(selection: str) -> Claim:
        settled = {
            name: share(sum(hits), len(hits))
            for name in ("block_size 4096", "journal writeback")
            for hits in [systems.settled[selection][name]]
        }
        claim = above(
            '"in the 8th generation, all configurations have a Block Size of 4K and Journal Option '
            'of writeback"',
            settled,
            " %",
            bound=HALF,
            tried="in more than half of the studies all valid members of the eighth generation "
            "have 4K blocks; in more than half all have writeback",
        )
        members = ", ".join(f"{name} {of:.0f} %" for name, of in systems.last[selection].items())
        best = _value(systems.each["ext3"], "journal")
        return _noted(claim, f"Of all members: {members}. The best here has {best}")

    def best_alleles(selection: str) -> Claim:
        ext3 = systems.each["ext3"]
        shares = systems.last[selection]
        most = {}
        for name in file_systems.DIVERSE:
            [parameter] = [one for one in ext3.parameters if one.name == name]
            most[name] = max(map(str, parameter.values), key=lambda of: shares[f"{name} {of}"])
        return judged(
            '"GA works by identifying a subset of genes that have a greater impact on performance '
            '[...] and finding the best alleles for them" (4.4; the block size and the journal '
            "option)",
            {name: value == _value(ext3, name) for name, value in most.items()},
            ", ".join(
                f"{name} {value} {shares[f'{name} {value}']:.0f} %" for name, value in most.items()
            ),
            tried="on Ext3 the commonest value of each among the eighth generation's valid members "
            "is that of the best",
        )

    def diverse(selection: str) -> Claim:
        return above(
            '"In the first generation, the gene\'s alleles (parameter values) were quite diverse": '
            "three of the block size, three of the journal option (figure 8: one run, as we read "
            "it)",
            {
                name: share(sum(hits), len(hits))
                for name, hits in systems.diverse[selection].items()
            },
            " %",
            bound=HALF,
            tried="on Ext3, of more than 50 % of the studies the first generation's valid members "
            "have all values",
        )

    return [
        with_readings(
            {f"selection `{selection}`": diverse(selection) for selection in systems.diverse}
        ),
        with_readings(
            {
                f"selection `{selection}`": above(
                    '"However, the diversity of alleles decreased in later generations"',
                    {"ext3": of},
                    tried="the commonest value's share grows from the first generation to the "
                    "eighth, percentage points",
                )
                for selection, of in systems.diversity.items()
            }
        ),
        with_readings(
            {f"selection `{selection}`": all_settle(selection) for selection in systems.settled}
        ),
        with_readings(
            {
                f"selection `{selection}`": above(
                    '"there is often a small set of alleles (parameter values) that dominate the '
                    'current population and are unlikely to change"',
                    {"ext3": of},
                    " %",
                    bound=HALF,
                    tried="in more than 50 % of the steps from one generation to the next a "
                    "parameter's commonest value stays the commonest, after the first generation",
                )
                for selection, of in systems.staying.items()
            }
        ),
        above(
            '"GA works by identifying the combination of good alleles [...], and producing '
            'offspring with these alleles"',
            {of.on.name: _settling(of) for of in replayed},
            tried="between runs 1-8 and runs 65-72 the share of members with the best's value "
            "grows more for the parameter of the highest R² than for that of the lowest, "
            "percentage points",
        ),
        with_readings(
            {f"selection `{selection}`": best_alleles(selection) for selection in systems.last}
        ),
    ]


def _value(on: Table, name: str) -> str:
    """Of a parameter, in the best."""
    place = [parameter.name for parameter in on.parameters].index(name)
    return str(on.parameters[place].values[on.points[on.best][place]])


def _settling(of: Replayed) -> Difference:
    strength = file_systems.importance(of.on)
    most = max(range(len(strength)), key=strength.__getitem__)
    least = min(range(len(strength)), key=strength.__getitem__)
    return paired(
        of.spreads(most, SETTLED, GENERATION),
        of.spreads(least, SETTLED, GENERATION),
    )


def _of_the_reasons(replayed: Sequence[Replayed]) -> list[Claim]:
    """The end of section 4.4, by the best's values of the two parameters that matter most."""

    def grows(name: str, begin: float, end: float) -> dict[str, Difference]:
        return {
            of.on.name: paired(of.in_promising(name, begin, end), of.in_promising(name, 0.0, 0.25))
            for of in replayed
        }

    def more_often(*pairs: tuple[str, str]) -> dict[str, Difference]:
        return {
            f"{of.on.name}, {one} - {other}": compared(of.in_promising(one), of.in_promising(other))
            for of in replayed
            for one, other in pairs
        }

    reached = {
        f"{of.on.name}, {name}": share(sum(hit > 0.0 for hit in hits), len(hits))
        for of in replayed
        for name in METHODS
        if (hits := of.found_after_promising(name, near_optimal(of.on)))
    }
    combination = "the best's values of the two parameters that matter most"
    return [
        above(
            "\"As long as the optimization algorithm identifies the 'correct' combination of "
            "values for these dominant parameters, it will be able to find a near-optimal "
            'configuration"',
            reached,
            " %",
            bound=HALF,
            tried=f"of the studies that have run one with {combination} in the first half of their "
            f"runs, more than 50 % run {FILES} by the end; on file-systems GA and BO are given "
            "such a one, xfs's default",
        ),
        above(
            "\"GA's efficacy comes from assigning a higher chance of survival to configurations "
            'with a certain combination of values for the dominant parameters"',
            grows("GA", 0.75, 1.0),
            tried=f"more of the last quarter of its valid runs than of the first have "
            f"{combination}, percentage points; that its efficacy comes of it is not tried",
        ),
        untried(
            "BO's model \"eventually encodes the combination of dominant parameter values that can "
            'result in good throughput values"',
            "what its model encodes is not recorded, and it runs nothing twice, so that later few "
            "of these are left. Known is by how much more of the second quarter of its runs than "
            f"of the first have {combination}, percentage points: {listed(grows('BO', 0.25, 0.5))}",
        ),
        above(
            '"SA does not work as well because it lacks history information to identify the '
            "dominant parameters: it wastes time changing less useful parameters and converges "
            'slowly"',
            more_often(("GA", "SA"), ("BO", "SA")),
            tried=f"fewer of its valid runs than of GA's and BO's have {combination}, percentage "
            "points; that it lacks a history for them is not tried",
        ),
        above(
            '"DQN also spends lots of its effort on exploring unpromising spaces, which slows its '
            'ability to find near-optimal configurations"',
            more_often(("GA", "DQN"), ("BO", "DQN")),
            tried="the same of DQN",
        ),
        untried(
            "all techniques employ exploration, exploitation and history "
            '"to varying degrees" (section 1; table 1)',
            "words that explain, and a table of words; what of them leaves a trace in the runs is "
            "in the rows above",
        ),
    ]


def _of_speed(replayed: Sequence[Replayed]) -> list[Claim]:
    """How many have found it by each time; each comparison at 5 % over all of a method's."""
    kinds = {"near-optimal": near_optimal, "the best 4.5 %": best_of}
    cases = [(of, time) for of in replayed for time in TIMES if time <= of.horizon]
    count = len(kinds) * len(cases) * (len(METHODS) - 1)
    behind: dict[str, list[str]] = {name: [] for name in METHODS}
    for kind, close in kinds.items():
        for of, time in cases:
            found = {name: of.found(name, close(of.on), time) for name in METHODS}
            for name in METHODS:
                ahead = [
                    other
                    for other in METHODS
                    if other != name and surely_more(found[other], found[name], count)
                ]
                if ahead:
                    first = max(ahead, key=lambda other: fmean(found[other]))
                    behind[name].append(
                        f"{of.on.name}, {kind}, t = {time}: {fmean(found[name]):.0f} against "
                        f"{fmean(found[first]):.0f} % of {first}"
                    )
    told = "; ".join(
        f"{name} is surely behind another in {len(places)} of {count // (len(METHODS) - 1)} cases"
        + (f" ({places[0]})" if places else "")
        for name, places in behind.items()
    )
    by_hour = {of.on.name: of.found("BO", near_optimal(of.on), HOUR) for of in replayed}
    return [
        untried(
            '"the speed at which the techniques can find optimal or near-optimal configurations '
            '[...] depends on the hardware, software, and workload"',
            "the methods were not replayed on the twelve access patterns, which differ in their "
            "work alone; hardware and software are not varied, and each other table has "
            f"parameters of its own. By t = {HOUR} studies of BO have found one on "
            + ", ".join(f"{name} {fmean(of):.0f} %" for name, of in by_hour.items()),
        ),
        some(
            '"this means that no single technique can \'rule them all\'"; "no one technique was '
            'superior to all others" (abstract)',
            min(map(len, behind.values())),
            told,
            tried=f"each technique is surely behind another in some case: of what is found by "
            f"t = {', '.join(map(str, TIMES))} on each table, as far as its equal time lasts, "
            "near-optimal ones and the best 4.5 %",
        ),
    ]


def _noted(claim: Claim, note: str) -> Claim:
    return replace(claim, figure=f"{claim.figure}. {note}") if note else claim
