"""Robert 2019: tables 2 and 3, shares, figures 4 and 5."""

from statistics import fmean
from typing import Any

from comparison.markdown import number, table
from comparison.simulate import Method, figures
from peers.program import Program
from peers.tables import Table

from papers import drawing, ranks, studies
from papers.claims import (
    HOLDS,
    NOT,
    UNTRIED,
    Claim,
    Difference,
    above,
    below,
    column,
    judged,
    paired,
)
from papers.claims import rows as claimed
from papers.published import HEURISTICS, SHARES, TABLE_2
from papers.text import prose

BUDGET = 100
"""Runs of a study, as in the paper."""
HIGHER = {"S", "Gain"}
"""The metrics of which more is better."""
METRICS = {
    "S": "S (%)",
    "IS": "IS",
    "DistOpt": "Dist Opt (s)",
    "AvgDist": "Avg Dist (s)",
    "EC": "EC (s)",
    "ECBest": "EC, best so far (s)",
    "ET": "ET (s)",
    "Gain": "gain (%)",
}
RANKED = ("S", "DistOpt", "AvgDist", "EC", "ECBest", "Gain")
ALL, HALF = 100.0, 50.0
"""Of studies, or runs, %."""
BLOCKS = 8
"""So many parts of the studies are ranked apart."""
_REVISITS = {
    "whatever comes": "any",
    "unlike its parents": "unlike_parents",
    "nothing twice": "never",
}
"""The readings of a child that was tested: the first is the default."""
_SURROGATE = "robert2019-surrogate:robert2019-surrogate.acquisition="
_SECONDS = "robert2019-surrogate:scale=seconds,robert2019-surrogate.acquisition="
_GENETIC = (
    "robert2020:noise=none,mutation_rate=0.1,crossover=n_point,crossover.points=2,"
    "robert2020.revisits="
)
_ANNEALING = "robert2019-annealing:robert2019-annealing."
VARIANTS = {
    "SM": [
        Method("expected improvement", f"{_SURROGATE}expected_improvement"),
        Method("probability of improvement", f"{_SURROGATE}probability_of_improvement"),
        Method("posterior minimum", f"{_SURROGATE}posterior_minimum"),
        *(
            Method(f"{name}, whatever comes", f"{_SURROGATE}{word},revisits=any")
            for name, word in (
                ("expected improvement", "expected_improvement"),
                ("probability of improvement", "probability_of_improvement"),
                ("posterior minimum", "posterior_minimum"),
            )
        ),
    ],
    "GA": [
        *(Method(f"tournament, {name}", f"{_GENETIC}{word}") for name, word in _REVISITS.items()),
        *(
            Method(f"probabilistic, {name}", f"{_GENETIC}{word},selection=probabilistic")
            for name, word in _REVISITS.items()
        ),
    ],
    "SA": [
        Method("exponential", "robert2019-annealing"),
        Method(
            "multiplicative",
            f"{_ANNEALING}cooling=multiplicative,robert2019-annealing.cooling.factor=1",
        ),
        Method(
            "logarithmic", f"{_ANNEALING}cooling=logarithmic,robert2019-annealing.cooling.factor=1"
        ),
        Method(
            "restarts at random",
            f"{_ANNEALING}restart=random,robert2019-annealing.restart.probability=0.05",
        ),
        Method(
            "restarts by energy",
            f"{_ANNEALING}restart=threshold,robert2019-annealing.restart.share=0.9",
        ),
        Method("revisits are free", f"{_ANNEALING}revisits=free"),
    ],
}
"""The variants of each heuristic; the first stands for it in rankings."""
SECONDS = [
    Method("expected improvement, in seconds", f"{_SECONDS}expected_improvement"),
    Method("probability of improvement, in seconds", f"{_SECONDS}probability_of_improvement"),
]
"""Surrogates that take ten times as long to compute: of them there are few studies."""
SIDE_BY_SIDE = {
    "SM, nothing twice": ("SM", "expected improvement"),
    "SM, whatever comes": ("SM", "expected improvement, whatever comes"),
    "GA, whatever comes": ("GA", "tournament, whatever comes"),
    "GA, unlike its parents": ("GA", "tournament, unlike its parents"),
    "GA, nothing twice": ("GA", "tournament, nothing twice"),
    "SA": ("SA", "exponential"),
}
"""The readings of what was tested, in the order of their columns."""


def page(
    program: Program, tables: list[Table], quiet: list[Any], seeds: int, patterns: list[Table]
) -> tuple[list[str], dict[str, str]]:
    """The page's lines, and its drawings. `quiet` are the tables without noise.

    `patterns` are tables of one accelerator under several access patterns.
    """
    methods = [method for variants in VARIANTS.values() for method in variants]
    each = max(seeds // BLOCKS, 1)
    words = ["--exploring-only", "--per-seed", "--budget", str(BUDGET), "--seeds", str(each)]
    results = [
        program.simulate(
            quiet, [method.text for method in methods], [*words, "--first-seed", str(each * nth)]
        )
        for nth in range(BLOCKS)
    ]
    few = max(each // 2, 2)
    slow = program.simulate(
        quiet, [one.text for one in SECONDS], [*words[:-1], str(few), "--first-seed", "0"]
    )
    said = {
        "budget": str(BUDGET),
        "seeds": str(each * BLOCKS),
        "blocks": str(BLOCKS),
        "few": str(few),
    }
    lines = [*prose("robert2019", **said), ""]
    lines += [*claimed(_claims(results, tables, patterns)), "", *_distributed(tables), ""]
    lines += [*prose("robert2019-tables", **said), "", *_of_paper()]
    drawn = {}
    for nth, on in enumerate(tables):
        of = [result["tables"][nth] for result in results]
        lines += ["", *_of_table(of, on, slow["tables"][nth])]
        name = f"robert2019-{on.name}.svg"
        drawn[name] = _trajectories(of[0], on)
        lines += ["", f"![trajectories on {on.name}](figures/{name})"]
    lines += ["", *prose("robert2019-readings", **said), "", *_side_by_side(results, tables)]
    lines += ["", *prose("robert2019-ranks", **said), "", *_compared(results, tables)]
    lines += ["", *prose("robert2019-shares"), "", *_shares(results, tables)]
    return [*lines, "", *prose("robert2019-not-made", **said), "", *prose("robert2019-why")], drawn


def _distributed(tables: list[Table]) -> list[str]:
    """Figures 2 and 3: quantiles of the times, and where the default lies."""
    rows = []
    for on in tables:
        ordered, mean = sorted(on.truths), fmean(on.truths)
        default = on.truths[on.default]
        cells = [
            f"{ordered[int(share * (len(ordered) - 1))] / mean:.2f}"
            for share in (0.0, 0.1, 0.5, 0.9, 1.0)
        ]
        quicker = 100.0 * sum(time < default for time in ordered) / len(ordered)
        rows.append([on.name, *cells, f"{default / mean:.2f}", f"{quicker:.0f} %"])
    head = ["time over the mean", "least", "10 %", "median", "90 %", "most", "the default"]
    return [*prose("robert2019-figures"), "", *table([*head, "quicker than it"], rows)]


def _of_paper() -> list[str]:
    rows = [
        [
            data,
            heuristic,
            *(
                number(columns[metric][place], 4) if metric in columns else "-"
                for metric in METRICS
            ),
        ]
        for data, columns in TABLE_2.items()
        for place, heuristic in enumerate(HEURISTICS)
    ]
    return table(["the paper", "", *METRICS.values()], rows, left=2)


def _names() -> list[tuple[str, str]]:
    return [(heuristic, method.name) for heuristic in VARIANTS for method in VARIANTS[heuristic]]


def _of_table(of: list[dict[str, Any]], on: Table, slow: dict[str, Any]) -> list[str]:
    rows = []

    def row(heuristic: str, name: str, blocks: list[dict[str, float | None]]) -> None:
        cells = []
        for metric in METRICS:
            known = [value for found in blocks if (value := found[metric]) is not None]
            cells.append(number(fmean(known) if known else None, 3))
        rows.append([heuristic, name, *cells])

    for place, (heuristic, name) in enumerate(_names()):
        row(heuristic, name, [figures(one["methods"][place]) for one in of])
    for method, found in zip(SECONDS, slow["methods"], strict=True):
        row("SM", method.name, [figures(found)])
    head = f"{on.name}, {len(on.points)} of {len(on.parameters)}"
    return table([head, "", *METRICS.values()], rows, left=2)


def _first() -> list[int]:
    """The places of the heuristics' first variants."""
    return [sum(len(VARIANTS[h]) for h in HEURISTICS[:nth]) for nth in range(len(HEURISTICS))]


def _trajectories(of: dict[str, Any], on: Table) -> str:
    series = {
        heuristic: studies.courses(of["methods"][place], on)[0]
        for heuristic, place in zip(HEURISTICS, _first(), strict=True)
    }
    series["default"] = [on.truths[on.default]] * BUDGET
    series["optimum"] = [on.truths[on.best]] * BUDGET
    return drawing.lines(series, "iteration", "time, s")


def _compared(results: list[dict[str, Any]], tables: list[Table]) -> list[str]:
    rows = []
    for metric in RANKED:
        higher = metric in HIGHER
        for nth, on in enumerate(tables):
            orders = []
            for result in results:
                methods = result["tables"][nth]["methods"]
                ours = [ranks.rounded(figures(methods[place])[metric]) for place in _first()]
                orders.append(ranks.order(HEURISTICS, ours, higher))
            often = max(dict.fromkeys(orders), key=orders.count)
            rows.append([METRICS[metric], on.name, often, f"{orders.count(often)} of {BLOCKS}"])
        for data, columns in TABLE_2.items():
            if metric not in columns:
                continue
            order = ranks.order(HEURISTICS, columns[metric], higher)
            rows.append([METRICS[metric], f"the paper's {data}", order, ""])
    return table(["", "", "order, best first", "in"], rows, left=3)


def _studies(results: list[dict[str, Any]], nth: int, metric: str, place: int) -> list[float]:
    """A metric of all studies of a variant on a table; 0 where a study has none."""
    return [
        value or 0.0
        for result in results
        for value in column(result["tables"][nth]["methods"][place], metric)
    ]


def _side_by_side(results: list[dict[str, Any]], tables: list[Table]) -> list[str]:
    places = {name: _names().index(variant) for name, variant in SIDE_BY_SIDE.items()}
    rows = []
    for metric in ("AvgDist", "Gain", "S", "EC", "ECBest"):
        for nth, on in enumerate(tables):
            means = {
                name: fmean(_studies(results, nth, metric, place)) for name, place in places.items()
            }
            rows.append([METRICS[metric], on.name, *(number(mean) for mean in means.values())])
    head = ["", "", *places]
    orders = []
    for metric in ("AvgDist", "Gain"):
        for nth, on in enumerate(tables):
            cells = []
            for surrogate, genetic in (
                ("SM, nothing twice", "GA, whatever comes"),
                ("SM, nothing twice", "GA, unlike its parents"),
                ("SM, nothing twice", "GA, nothing twice"),
                ("SM, whatever comes", "GA, whatever comes"),
            ):
                compared = [
                    fmean(_studies(results, nth, metric, places[name]))
                    for name in (surrogate, genetic, "SA")
                ]
                cells.append(ranks.order(HEURISTICS, compared, metric in HIGHER))
            orders.append([METRICS[metric], on.name, *cells])
    readings = [
        "GA whatever comes, SM nothing twice",
        "GA unlike its parents, SM nothing twice",
        "both nothing twice",
        "both whatever comes",
    ]
    return [
        *table(head, rows, left=2),
        "",
        *prose("robert2019-orders"),
        "",
        *table(["", "", *readings], orders, left=6),
    ]


def _claims(
    results: list[dict[str, Any]], tables: list[Table], patterns: list[Table]
) -> list[Claim]:
    """The paper's sentences, by paired differences over studies."""
    first = dict(zip(HEURISTICS, _first(), strict=True))

    def of(metric: str, name: str, nth: int) -> list[float]:
        return _studies(results, nth, metric, first[name])

    def pairs(metric: str, one: str, *others: str) -> dict[str, Difference]:
        return {
            f"{on.name}, {one} - {other}": paired(of(metric, one, nth), of(metric, other, nth))
            for nth, on in enumerate(tables)
            for other in others
        }

    def runs(name: str, nth: int, begin: int, end: int) -> list[float]:
        """The mean time of a part of each study's runs."""
        found = [result["tables"][nth]["methods"][first[name]] for result in results]
        return [
            fmean(times[begin:end])
            for method in found
            for times in studies.courses(method, tables[nth])
        ]

    success = [fmean(of("S", "SM", nth)) for nth in range(len(tables))]
    quarters = {
        on.name: paired(runs("SM", nth, 75, 100), runs("SM", nth, 25, 50))
        for nth, on in enumerate(tables)
    }
    settled = {
        on.name: paired(
            runs("GA", nth, 15, BUDGET), [on.truths[on.default]] * len(runs("GA", nth, 15, BUDGET))
        )
        for nth, on in enumerate(tables)
    }
    gain = {
        on.name: paired(of("Gain", "GA", nth), [0.0] * len(of("Gain", "GA", nth)))
        for nth, on in enumerate(tables)
    }
    quicker = {
        on.name: 100.0 * sum(time < on.truths[on.default] for time in on.truths) / len(on.truths)
        for on in tables
    }
    below_default = {}
    for nth, on in enumerate(tables):
        found = [result["tables"][nth]["methods"] for result in results]
        heuristics = [
            [times for one in found for times in studies.courses(one[place], on)]
            for place in first.values()
        ]
        default = on.truths[on.default]
        below_default[on.name] = [studies.share(times, default) for times in heuristics]
    bests = {tuple(on.points[on.best]) for on in patterns}
    return [
        judged(
            "the default parametrization is not optimal",
            {name: share > 0.0 for name, share in quicker.items()},
            "; ".join(f"{name}: {share:.0f} % are faster" for name, share in quicker.items()),
        ),
        Claim(
            "the optimal parametrization varies with the application",
            HOLDS if len(bests) > 1 else NOT,
            f"`romio` under {len(patterns)} access patterns has {len(bests)} different optima",
        ),
        below(
            "surrogates come nearest to the optimum (Dist Opt)", pairs("DistOpt", "SM", "GA", "SA")
        ),
        judged(
            "SBB: the surrogate finds the optimum in all studies",
            {tables[0].name: success[0] == ALL},
            f"{tables[0].name}: {success[0]:.1f} % (the others: "
            + ", ".join(f"{one:.1f}" for one in success[1:])
            + ")",
        ),
        Claim(
            "SRO: no study of the surrogate succeeds, and yet it is 1 ms from the optimum",
            UNTRIED,
            "the small read optimizer and its data are not to be had",
        ),
        below("the genetic algorithm has the least Avg Dist", pairs("AvgDist", "GA", "SM", "SA")),
        below(
            "the genetic algorithm has the least exploration cost", pairs("EC", "GA", "SM", "SA")
        ),
        below("the same, against the best so far", pairs("ECBest", "GA", "SM", "SA")),
        below("its returned optimum is nearer than annealing's", pairs("DistOpt", "GA", "SA")),
        below("annealing has a higher exploration cost than it", pairs("EC", "GA", "SA")),
        above(
            "the surrogate moves on to what is slower once a part is explored: runs 76 to 100 "
            "over runs 26 to 50, s",
            quarters,
        ),
        below(
            "the genetic algorithm performs better than the default, after the design, s", settled
        ),
        above("it gains time over the whole loop (table 3), %", gain),
        above(
            "it gains more than the surrogate and annealing (table 3), %",
            pairs("Gain", "GA", "SM", "SA"),
        ),
        judged(
            "most executions of all heuristics are below the default's time (77.57 and 89.47 %)",
            {name: fmean(shares) > HALF for name, shares in below_default.items()},
            "; ".join(f"{name} {fmean(shares):.1f} %" for name, shares in below_default.items()),
        ),
        judged(
            "the genetic algorithm has the most of them",
            {name: shares[1] >= max(shares) for name, shares in below_default.items()},
            "; ".join(
                f"{name} " + ", ".join(f"{one:.0f}" for one in shares) + " %"
                for name, shares in below_default.items()
            )
            + " (SM, GA, SA)",
        ),
        above("surrogates take the longest to compute (ET), s", pairs("ET", "SM", "GA", "SA")),
        Claim(
            "the two accelerators gain 38 and 20 % of their applications' time",
            UNTRIED,
            "neither is to be had; what other programs gain is above",
        ),
    ]


def _shares(results: list[dict[str, Any]], tables: list[Table]) -> list[str]:
    rows = []
    for nth, on in enumerate(tables):
        cells = []
        for threshold in (on.truths[on.default], fmean(on.truths)):
            of = [
                fmean(
                    studies.share(
                        studies.courses(result["tables"][nth]["methods"][place], on), threshold
                    )
                    for result in results
                )
                for place in _first()
            ]
            cells += [*(f"{one:.0f}" for one in of), f"{fmean(of):.1f}"]
        rows.append([on.name, *cells])
    for data, (default, mean) in SHARES.items():
        rows.append([f"the paper's {data}", "", "", "", str(default), "", "", "", str(mean)])
    head = [
        "%",
        *(f"{name} below the default" for name in HEURISTICS),
        "all",
        *(f"{name} below the mean" for name in HEURISTICS),
        "all",
    ]
    return table(head, rows)
