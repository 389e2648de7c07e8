"""Cao 2018: figures 3 to 9, tables 4 and 5."""

from bisect import bisect_right
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

from comparison.markdown import number, table
from comparison.simulate import Method, near
from peers.program import Program
from peers.tables import Table

from papers import drawing, file_systems, ranks, studies
from papers.claims import HOLDS, NOT, UNTRIED, Claim, Difference, above, judged, paired
from papers.claims import rows as claimed
from papers.published import FIGURE_5
from papers.text import prose

BUDGET = 100
"""Runs of a study."""
TIMES = (5, 10, 20, 40, 80)
"""In runs of the default."""
_GENETIC = "cao2018-genetic:cao2018-genetic"
METHODS = [
    Method("SA", "cao2018-annealing"),
    Method("GA", "cao2018-genetic"),
    Method("DQN", "cao2018-dqn"),
    Method("BO", "cao2018-bayesian"),
    Method("RS", "random"),
]
SLOW = ("DQN", "BO")
"""The methods whose suggestions take long to compute: of them there may be fewer studies."""
SELECTIONS = ("proportional", "best", "ranks")
"""The readings of how parents are selected: the first is the default."""
RATES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Figure 7's mutation rates."""
BEST_RATE = 0.32
"""The paper's best of them."""
ALL = 99.5
"""What rounds to all members of a generation, %."""
NEAR_OPTIMAL = 0.99
"""Of the best throughput: near-optimal is above it (section 4.2)."""
NEAR = 1.0 / NEAR_OPTIMAL - 1.0
"""More than 99 % of the best throughput: so much more than the least time."""
NEAR_OF_FIGURE_7 = 0.995
"""Near-optimal in figure 7: above this share of the best throughput."""
EASY = 0.045
"""The share of near-optimal configurations of the paper's M2-Mailserver-HDD3."""
GENERATION = 8
BEGIN = ("GA", "BO")
"""The methods that begin with each file system's default."""
EXT3 = "ext3"
"""The file system of figures 8 and 9."""


def page(
    program: Program,
    tables: list[Table],
    quiet: list[Path],
    seeds: int,
    rates_seeds: int,
    slow_seeds: int,
) -> tuple[list[str], dict[str, str]]:
    """The page's lines, and its drawings. `quiet` are the tables without noise.

    `slow_seeds` are the studies of those methods that take long to compute.
    """
    slow_seeds = min(slow_seeds, seeds)
    result = {"tables": _both(program, tables, quiet, seeds, slow_seeds)}
    said = {
        "budget": str(BUDGET),
        "seeds": str(seeds),
        "slow_seeds": str(slow_seeds),
        "half": str(_seeds(file_systems.NAME, seeds)),
        "slow_half": str(_seeds(file_systems.NAME, slow_seeds)),
        "rates_seeds": str(rates_seeds),
        "sparse": str(file_systems.BUDGET),
    }
    systems = next((on for on in tables if on.name == file_systems.NAME), None)
    apart = quiet[0].parent / "systems"
    figure_7, found_7 = _figure_7(program, tables, quiet, rates_seeds)
    alleles: list[str] = []
    settled: dict[str, dict[str, float]] = {}
    ext3 = None
    if systems is not None:
        ext3 = file_systems.of_system(systems, EXT3, apart)
        for selection in SELECTIONS:
            text = f"{_GENETIC}.selection={selection}"
            rows, last = file_systems.alleles(program, ext3, text, seeds)
            alleles += ["", f"Selection `{selection}`:", "", *rows]
            settled[selection] = last
    lines = [*prose("cao2018", **said), ""]
    lines += [*claimed(_claims(result["tables"], tables, found_7, settled, ext3, systems, apart))]
    lines += ["", *prose("cao2018-figure3"), "", *_figure_3(tables)]
    drawn = {}
    lines += ["", *prose("cao2018-figure4", **said)]
    for of, on in zip(result["tables"], tables, strict=True):
        name = f"cao2018-{on.name}.svg"
        drawn[name] = _best_so_far(of, on)
        lines += ["", f"![best so far on {on.name}](figures/{name})"]
    lines += ["", *prose("cao2018-figure5", **said)]
    for of, on in zip(result["tables"], tables, strict=True):
        lines += ["", *_figure_5(of, on)]
    lines += ["", *_compared(result, tables)]
    lines += ["", *prose("cao2018-figure6"), "", *_figure_6(result, tables)]
    lines += [
        "",
        *prose("cao2018-figure7", **said),
        "",
        *figure_7,
    ]
    lines += ["", *prose("cao2018-figure8"), "", *_figure_8(result, tables)]
    if ext3 is not None:
        lines += ["", *prose("cao2018-alleles", **said), *alleles]
        lines += ["", *prose("cao2018-figure9")]
        lines += ["", *file_systems.clusters(ext3, "journal", "block_size")]
    lines += ["", *prose("cao2018-table5"), "", *_table_5(tables)]
    if systems is not None:
        lines += ["", *prose("cao2018-systems"), "", *file_systems.by_system(systems, apart)]
    return [*lines, "", *prose("cao2018-not-made", **said), "", *prose("cao2018-why")], drawn


def _both(
    program: Program, tables: list[Table], quiet: list[Path], seeds: int, slow_seeds: int
) -> list[dict[str, Any]]:
    """All methods in their order, each with as many studies as it has."""
    found: dict[str, list[dict[str, Any]]] = {}
    for many, slow in ((seeds, False), (slow_seeds, True)):
        some = [method for method in METHODS if (method.name in SLOW) == slow]
        for of in _replayed(program, tables, quiet, some, many, ["--per-seed"]):
            for method, one in zip(some, of["methods"], strict=True):
                found.setdefault(of["name"], []).append({**of, "methods": [(method.name, one)]})
    names = [method.name for method in METHODS]
    together = []
    for on in tables:
        by_name = dict(pair for of in found[on.name] for pair in of["methods"])
        together.append({**found[on.name][0], "methods": [by_name[name] for name in names]})
    return together


def _replayed(
    program: Program,
    tables: list[Table],
    quiet: list[Path],
    methods: list[Method],
    seeds: int,
    words: list[str],
) -> list[dict[str, Any]]:
    """What `io-autotune-simulate` says of each table and, there, of each method, in order."""
    dense = [path for path in quiet if path.stem != file_systems.NAME]
    words = ["--exploring-only", *words]
    many = ["--seeds", str(seeds), "--budget", str(BUDGET)]
    whole = program.simulate(dense, [method.text for method in methods], [*words, *many])
    by_name = {of["name"]: of for of in whole["tables"]}
    for path in set(quiet) - set(dense):
        some = ["--seeds", str(_seeds(file_systems.NAME, seeds))]
        by_name[file_systems.NAME] = _sparse(program, path, methods, [*words, *some])
    return [by_name[on.name] for on in tables]


def _seeds(table: str, seeds: int) -> int:
    """The studies of a table: half as many where they are long."""
    return max(seeds // 2, 1) if table == file_systems.NAME else seeds


def _sparse(
    program: Program, path: Path, methods: list[Method], words: list[str]
) -> dict[str, Any]:
    """The same of the table of file systems, where some methods begin with several defaults."""
    by_label: dict[str, Any] = {}
    for begins in (False, True):
        some = [one.text for one in methods if (one.name in BEGIN) == begins]
        if not some:
            continue
        more = ["--budget", str(file_systems.BUDGET), *file_systems.words(begins)]
        answer = program.simulate([path], some, [*words, *more])
        of = answer["tables"][0]
        by_label |= dict(zip(some, of["methods"], strict=True))
    return {**of, "methods": [by_label[one.text] for one in methods]}


def _figure_3(tables: list[Table]) -> list[str]:
    rows = []
    for on in tables:
        ordered = sorted(on.truths)
        default = on.truths[on.default]
        quantiles = [
            ordered[int(share * (len(ordered) - 1))] for share in (0.0, 0.1, 0.5, 0.9, 1.0)
        ]
        better = 100.0 * sum(time < default for time in on.truths) / len(on.truths)
        rows.append(
            [
                on.name,
                *(number(quantiles[0] / time, 3) for time in quantiles),
                f"{better:.0f} %",
                f"{100.0 * near(on, NEAR) / len(on.points):.2g} %",
            ]
        )
    head = ["throughput over the best's, quantiles", "best", "10 %", "50 %", "90 %", "worst"]
    best = [
        [
            on.name,
            ", ".join(
                f"{parameter.name} {parameter.values[level]}"
                for parameter, level in zip(on.parameters, on.points[on.best], strict=True)
            ),
        ]
        for on in tables
    ]
    return [
        *table([*head, "better than the default", "near-optimal"], rows),
        "",
        *prose("cao2018-table4"),
        "",
        *table(["", "the best"], best, left=2),
    ]


def _courses(found: dict[str, Any], on: Table) -> list[list[float]]:
    """The true times of the runs of each study; what is invalid took none."""
    if on.name != file_systems.NAME:
        return studies.courses(found, on)
    return [
        [on.truths[place] for place in study["runs"] if place is not None]
        for study in found["studies"]
    ]


def _best_so_far(of: dict[str, Any], on: Table) -> str:
    series = {}
    for method, found in zip(METHODS, of["methods"], strict=True):
        first = _courses(found, on)[0]
        series[method.name] = [min(first[: nth + 1]) for nth in range(len(first))]
    return drawing.lines(series, "run", "least time so far, s")


def _figure_5(of: dict[str, Any], on: Table) -> list[str]:
    near_best = 100.0 * near(on, NEAR) / len(on.points)
    rows = []
    for method, found in zip(METHODS, of["methods"], strict=True):
        times, seeds = found["near_times"], len(found["studies"])
        by_time = [100.0 * bisect_right(times, n * of["default"]) / seeds for n in TIMES]
        ends = 100.0 * len(times) / seeds
        cells = [*(number(one) for one in by_time), number(ends), str(seeds)]
        rows.append([method.name, *cells])
    if on.name == file_systems.NAME:
        valid, best = len(on.points), near(on, NEAR)
        drawn = [
            file_systems.found_at_random(valid, best, int(n * of["default"] / fmean(on.truths)))
            for n in TIMES
        ]
        rows.append(["RS, valid ones alone", *(number(one) for one in drawn), "", "computed"])
    head = [f"{on.name}: {number(near_best, 2)} % near-optimal", *(f"t = {n}" for n in TIMES)]
    return table([*head, "all runs", "studies"], rows)


def _ends(found: dict[str, Any]) -> float:
    """The share of a method's studies that have run what is near-optimal, %."""
    return 100.0 * len(found["near_times"]) / len(found["studies"])


def _compared(result: dict[str, Any], tables: list[Table]) -> list[str]:
    names = [method.name for method in METHODS]
    rows = []
    for of, on in zip(result["tables"], tables, strict=True):
        ends = [ranks.rounded(_ends(found)) for found in of["methods"]]
        share = number(100.0 * near(on, NEAR) / len(on.points), 2)
        rows.append([on.name, share, ranks.order(names, ends, higher=True)])
    for system, (near_best, printed) in FIGURE_5.items():
        theirs = [-float(printed[name][0]) for name in names]
        order = ranks.order(names, theirs, higher=True)
        rows.append([f"the paper's {system}", number(near_best, 2), order])
    words = [
        f"- {system}:\n  " + "; ".join(f"{name} {words}" for name, (_, words) in printed.items())
        for system, (_, printed) in FIGURE_5.items()
    ]
    head = ["", "near-optimal %", "order at the end, best first"]
    return [
        "What the paper says of its figure, after five hours:",
        "",
        *words,
        "",
        *table(head, rows, left=3),
    ]


def _figure_6(result: dict[str, Any], tables: list[Table]) -> list[str]:
    """The mean throughput by quarter of the runs, over the best."""
    rows = []
    for of, on in zip(result["tables"], tables, strict=True):
        for method, found in zip(METHODS, of["methods"], strict=True):
            courses = _courses(found, on)
            most = max(len(times) for times in courses)
            ends = [most * quarter // 4 for quarter in range(5)]
            cells = []
            for begin, end in pairwise(ends):
                times = [time for course in courses for time in course[begin:end]]
                best = on.truths[on.best]
                cells.append(f"{fmean(best / time for time in times):.2f}" if times else "-")
            rows.append([on.name, method.name, str(most), *cells])
    quarters = ["first quarter", "second", "third", "last"]
    head = ["throughput over the best's", "", "runs", *quarters]
    return table(head, rows, left=2)


def _figure_7(
    program: Program, tables: list[Table], quiet: list[Path], seeds: int
) -> tuple[list[str], dict[tuple[str, str], list[list[bool]]]]:
    """The table, and by table and selection which studies found it, at each rate."""
    rows = []
    found: dict[tuple[str, str], list[list[bool]]] = {}
    readings = [(selection, "run") for selection in SELECTIONS] + [(SELECTIONS[0], "free")]
    results = []
    for selection, revisits in readings:
        prefix = f"{_GENETIC}.selection={selection},cao2018-genetic.revisits={revisits}"
        methods = [Method("GA", f"{prefix},cao2018-genetic.mutation_rate={rate}") for rate in RATES]
        # As published alone where a study is long.
        some = [path for path in quiet if revisits == "run" or path.stem != file_systems.NAME]
        of = [on for on, path in zip(tables, quiet, strict=True) if path in some]
        results.append(_replayed(program, of, some, methods, seeds, ["--per-seed"]))
    for nth, on in enumerate(tables):
        for (selection, revisits), result in zip(readings, results, strict=True):
            if nth >= len(result):
                continue
            hits = [_hits(method, on) for method in result[nth]["methods"]]
            if revisits == "run":
                found[on.name, selection] = hits
            ends = [100.0 * fmean(of) for of in hits]
            best = max(range(len(ends)), key=ends.__getitem__)
            cells = [number(end) for end in ends]
            cells[best] = f"**{cells[best]}**"
            rows.append([on.name, selection, revisits, *cells])
    rates = [f"{rate:.0%}" for rate in RATES]
    head = ["near-optimal found, %", "selection", "revisits", *rates]
    return table(head, rows, left=3), found


def _hits(method: dict[str, Any], on: Table) -> list[bool]:
    """Which studies have run what is near-optimal in figure 7."""
    best = on.truths[on.best]
    near_best = {
        nth
        for nth, time in enumerate(on.truths)
        if best / time > NEAR_OF_FIGURE_7 or nth == on.best
    }
    return [not near_best.isdisjoint(study["runs"]) for study in method["studies"]]


def _claims(
    results: list[dict[str, Any]],
    tables: list[Table],
    found_7: dict[tuple[str, str], list[list[bool]]],
    settled: dict[str, dict[str, float]],
    ext3: Table | None,
    systems: Table | None,
    apart: Path,
) -> list[Claim]:
    """The paper's sentences, by paired differences over studies."""
    names = [method.name for method in METHODS]

    def near_best(nth: int, name: str) -> list[float]:
        """100 for each study that ran what is near-optimal."""
        on = tables[nth]
        close = {
            place
            for place, time in enumerate(on.truths)
            if on.truths[on.best] / time > NEAR_OPTIMAL
        } | {on.best}
        found = results[nth]["methods"][names.index(name)]
        return [100.0 * (not close.isdisjoint(study["runs"])) for study in found["studies"]]

    def best_share(nth: int, name: str) -> list[float]:
        """100 for each study that ran one of the table's best, as many as the paper's are."""
        on = tables[nth]
        ordered = sorted(range(len(on.truths)), key=on.truths.__getitem__)
        close = set(ordered[: max(round(EASY * len(ordered)), 1)])
        found = results[nth]["methods"][names.index(name)]
        return [100.0 * (not close.isdisjoint(study["runs"])) for study in found["studies"]]

    def throughput(nth: int, name: str) -> list[float]:
        """The mean throughput of each study's runs, over the best's."""
        on = tables[nth]
        found = results[nth]["methods"][names.index(name)]
        best = on.truths[on.best]
        return [
            fmean(best / time for time in times) if times else 0.0 for times in _courses(found, on)
        ]

    def shorter(one: list[float], other: list[float]) -> tuple[list[float], list[float]]:
        """The studies that both have: they begin with the same seeds."""
        many = min(len(one), len(other))
        return one[:many], other[:many]

    every = list(enumerate(tables))
    default = {
        on.name: 100.0 * sum(time < on.truths[on.default] for time in on.truths) / len(on.truths)
        for on in tables
    }
    bests = {on.name: on.truths[on.default] / on.truths[on.best] for on in tables}
    found = [
        above(
            f"{one} finds near-optimal configurations more often than {other} (figure 5), %",
            {
                on.name: paired(*shorter(near_best(nth, one), near_best(nth, other)))
                for nth, on in every
            },
        )
        for one, other in (("GA", "SA"), ("GA", "RS"), ("GA", "DQN"), ("BO", "SA"), ("BO", "RS"))
    ]
    peaks = {
        selection: {
            on.name: RATES[max(range(len(RATES)), key=lambda at: fmean(of[at]))]
            for on in tables
            if (of := found_7[on.name, selection])
        }
        for selection in SELECTIONS
    }
    rising = [
        above(
            f"a mutation rate of 32 % finds more than 1 %, selection `{selection}` (figure 7), %",
            {on.name: _of_rates(found_7[on.name, selection], 5, 0) for on in tables},
        )
        for selection in SELECTIONS
    ] + [
        above(
            f"and more than 64 %, selection `{selection}`, %",
            {on.name: _of_rates(found_7[on.name, selection], 5, 6) for on in tables},
        )
        for selection in SELECTIONS
    ]
    claims = [
        judged(
            "default configurations are always sub-optimal (figure 3)",
            {name: share > 0.0 for name, share in default.items()},
            "; ".join(
                f"{name}: the best has {bests[name]:.2f} times its throughput, "
                f"{share:.0f} % are better"
                for name, share in default.items()
            ),
        ),
        *found,
        above(
            "GA and BO have more throughput while they search than SA, DQN and RS (figure 6), over "
            "the best's",
            {
                f"{on.name}, {one} - {other}": paired(
                    *shorter(throughput(nth, one), throughput(nth, other))
                )
                for nth, on in every
                for one in ("GA", "BO")
                for other in ("SA", "DQN", "RS")
            },
        ),
        *rising,
        Claim(
            "the best mutation rate is 32 % (figure 7)",
            _counted([rate == BEST_RATE for rate in peaks[SELECTIONS[0]].values()]),
            "; ".join(
                f"`{selection}` " + ", ".join(f"{name} {rate:.0%}" for name, rate in of.items())
                for selection, of in peaks.items()
            ),
        ),
    ]
    if ext3 is not None and systems is not None:
        claims += _of_systems(settled, ext3, systems, apart)
    claims += [
        above(
            "given enough time random search finds them most often where they are 4.5 % of all "
            "(figure 5): the best 4.5 % of each table, RS over GA, %",
            {
                on.name: paired(*shorter(best_share(nth, "RS"), best_share(nth, "GA")))
                for nth, on in every
            },
        ),
        Claim(
            "no technique is superior to all others: hardware, software and workload decide",
            HOLDS
            if len({max(names, key=lambda name: fmean(near_best(nth, name))) for nth, _ in every})
            > 1
            else NOT,
            "; ".join(
                f"{on.name}: "
                + ranks.order(
                    names, [ranks.rounded(fmean(near_best(nth, name))) for name in names], True
                )
                for nth, on in every
            ),
        ),
        Claim(
            "the optimal configuration depends on hardware and workload (table 4)",
            UNTRIED,
            "one machine and one device; `romio` under twelve access patterns has several optima: "
            "[Robert 2019](robert2019.md#what-the-paper-claims)",
        ),
        Claim(
            "energy, throughput and a formula of both can be the objective",
            UNTRIED,
            "nothing measures energy here; [other objectives](../engine.md#the-objective)",
        ),
    ]
    return claims


def _of_rates(hits: list[list[bool]], one: int, other: int) -> Difference:
    """Of the places of two mutation rates: the difference of the shares, %."""
    return paired([100.0 * hit for hit in hits[one]], [100.0 * hit for hit in hits[other]])


def _counted(holds: list[bool]) -> str:
    having = sum(holds)
    return HOLDS if having == len(holds) else f"{NOT} ({having} of {len(holds)})"


def _of_systems(
    settled: dict[str, dict[str, float]], ext3: Table, systems: Table, apart: Path
) -> list[Claim]:
    """What the paper says of single file systems."""
    clusters = file_systems.medians(ext3, "journal", "block_size")
    writeback = [clusters["writeback", size] for size in ("1024", "2048", "4096")]
    told = {
        selection: ", ".join(f"{name} {share:.0f} %" for name, share in last.items())
        for selection, last in settled.items()
    }
    first = settled[SELECTIONS[0]]
    strongest = [parameter.name for parameter, _ in file_systems.first_and_second(ext3)]
    differ = file_systems.strongest_of_each(systems, apart)
    return [
        judged(
            "in Ext3's eighth generation all have blocks of 4K and journal writeback (figure 8)",
            {
                "4096": first["block_size 4096"] >= ALL,
                "writeback": first["journal writeback"] >= ALL,
            },
            "; ".join(f"`{selection}`: {one}" for selection, one in told.items()),
        ),
        judged(
            "of Ext3 writeback is before ordered, ordered before journal, at each block size "
            "(figure 9)",
            {
                f"{one} before {other}": all(
                    clusters[one, size] > clusters[other, size] for size in ("1024", "2048", "4096")
                )
                for one, other in (("writeback", "ordered"), ("ordered", "journal"))
            },
            "medians over the best: "
            + "; ".join(f"{journal} {size}: {of:.2f}" for (journal, size), of in clusters.items()),
        ),
        Claim(
            "with writeback blocks of 4K have the highest throughput (figure 9)",
            HOLDS if writeback == sorted(writeback) else NOT,
            ", ".join(f"{one:.2f}" for one in writeback) + " at 1K, 2K and 4K",
        ),
        Claim(
            "of Ext3 journal option and block size matter most, in this order (table 5)",
            HOLDS if strongest == ["journal", "block_size"] else NOT,
            "the first is " + ", the second ".join(strongest),
        ),
        Claim(
            "the parameters that matter depend on the file system (table 5)",
            HOLDS if len({of.split(" ")[0] for of in differ.values()}) > 1 else NOT,
            "; ".join(f"{name}: {of}" for name, of in differ.items()),
        ),
    ]


def _figure_8(result: dict[str, Any], tables: list[Table]) -> list[str]:
    """The share of a generation's members that have the best parametrization's value."""
    rows = []
    genetic = [method.name for method in METHODS].index("GA")
    for of, on in zip(result["tables"], tables, strict=True):
        runs = [study["runs"] for study in of["methods"][genetic]["studies"]]
        strength = _importance(on)
        first = max(range(len(strength)), key=lambda place: strength[place])
        last = min(range(len(strength)), key=lambda place: strength[place])
        for place in (first, last):
            cells = []
            for generation in (0, 2, 5, 8):
                begin = generation * GENERATION
                members = [
                    one
                    for study in runs
                    for one in study[begin : begin + GENERATION]
                    if one is not None
                ]
                same = sum(on.points[one][place] == on.points[on.best][place] for one in members)
                cells.append(f"{100.0 * same / len(members):.0f}" if members else "-")
            name = on.parameters[place].name
            rows.append([on.name, f"{name} (R² {strength[place]:.2f})", *cells])
    head = [
        "with the best's value, %",
        "",
        *(f"runs {8 * g + 1}-{8 * g + 8}" for g in (0, 2, 5, 8)),
    ]
    return table(head, rows, left=2)


def _importance(on: Table) -> list[float]:
    """Each parameter's R² of times."""
    pairs = [(tuple(p), time) for p, time in zip(on.points, on.truths, strict=True)]
    return file_systems.shares(pairs, len(on.parameters))


def _table_5(tables: list[Table]) -> list[str]:
    rows = []
    for on in tables:
        shares = _importance(on)
        ordered = sorted(range(len(shares)), key=lambda place: -shares[place])
        told = (f"{on.parameters[place].name} {shares[place]:.2f}" for place in ordered[:4])
        pair = file_systems.told(file_systems.first_and_second(on))
        rows.append([on.name, ", ".join(told), pair])
    head = ["", "R² of times, the four greatest", "of throughput, the first and then the second"]
    return table(head, rows, left=3)
