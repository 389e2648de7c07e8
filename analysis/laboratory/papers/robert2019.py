"""Robert 2019: tables 2 and 3, shares, figures 4 and 5."""

from functools import partial
from statistics import fmean
from typing import Any

from comparison.markdown import number, table
from comparison.simulate import Method, figures
from peers.program import Program
from peers.tables import Table

from papers import drawing, ranks, robert2019_claims, studies
from papers.claims import column
from papers.claims import rows as claimed
from papers.published import DEFAULT_OF_SBB, HEURISTICS, SHARES, TABLE_2
from papers.robert2019_claims import BUDGET
from papers.text import prose

HIGHER = {"S", "Gain"}
"""The metrics of which more is better."""
METRICS = {
    "S": "S (%)",
    "IS": "IS",
    "DistOpt": "Dist Opt (s)",
    "AvgDist": "Avg Dist (s)",
    "EC": "EC (s)",
    "ECBest": "EC, best so far (s)",
    "Regressions": "regressions",
    "ET": "ET (s)",
    "Gain": "gain (%)",
}
RANKED = ("S", "DistOpt", "AvgDist", "EC", "ECBest", "Gain")
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
    "GA, probabilistic": ("GA", "probabilistic, whatever comes"),
    "SA": ("SA", "exponential"),
}
"""The readings of what was tested, in the order of their columns."""
POSTERIOR = {
    "SM, nothing twice": "posterior minimum",
    "SM, whatever comes": "posterior minimum, whatever comes",
}
"""The surrogate that exploits alone, under each of its readings."""
READINGS = {
    "GA whatever comes, SM nothing twice": ("SM, nothing twice", "GA, whatever comes"),
    "GA unlike its parents, SM nothing twice": ("SM, nothing twice", "GA, unlike its parents"),
    "both nothing twice": ("SM, nothing twice", "GA, nothing twice"),
    "both whatever comes": ("SM, whatever comes", "GA, whatever comes"),
    "GA unlike its parents, SM whatever comes": ("SM, whatever comes", "GA, unlike its parents"),
    "GA nothing twice, SM whatever comes": ("SM, whatever comes", "GA, nothing twice"),
    "GA probabilistic": ("SM, nothing twice", "GA, probabilistic"),
}
"""What is claimed is judged under each: the first has the defaults."""


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
        "each": str(each),
        "few": str(few),
        "design": str(robert2019_claims.DESIGN),
        "default": f"{tables[0].truths[tables[0].default]:.2g}",
        "hot": f"{_per_default(tables[0].truths[tables[0].default]):.0f}",
        "hot_there": f"{_per_default(DEFAULT_OF_SBB):.0f}",
        "default_there": f"{DEFAULT_OF_SBB:.0f}",
    }
    lines = [*prose("robert2019", **said), "", *prose("rule", source="the paper", has="has"), ""]
    claims = robert2019_claims.claims(results, tables, patterns, _readings())
    lines += [*claimed(claims), "", *_distributed(tables), ""]
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
    lines += ["", *prose("robert2019-shares", **said), "", *_shares(results, tables)]
    return [
        *lines,
        "",
        *prose("robert2019-not-made", **said),
        "",
        *prose("robert2019-why", **said),
    ], drawn


def _per_default(time: float) -> float:
    """T0 in times of the default: two figures."""
    return float(f"{robert2019_claims.TEMPERATURE / time:.2g}")


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

    def row(heuristic: str, name: str, blocks: list[dict[str, Any]]) -> None:
        """Means over all studies that have a metric: of IS they are the successful ones."""
        cells = []
        for metric in METRICS:
            known = [value for one in blocks for value in column(one, metric) if value is not None]
            cells.append(number(fmean(known) if known else None, 3))
        rows.append([heuristic, name, *cells])

    for place, (heuristic, name) in enumerate(_names()):
        row(heuristic, name, [one["methods"][place] for one in of])
    for method, found in zip(SECONDS, slow["methods"], strict=True):
        row("SM", method.name, [found])
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


def _readings() -> dict[str, dict[str, int]]:
    """The places of the variants that stand for the heuristics under each reading."""
    places = {name: _names().index(variant) for name, variant in SIDE_BY_SIDE.items()}
    least = {name: _names().index(("SM", variant)) for name, variant in POSTERIOR.items()}
    return {
        reading: {
            "SM": places[surrogate],
            "GA": places[genetic],
            "SA": places["SA"],
            robert2019_claims.EXPLOITING: least[surrogate],
        }
        for reading, (surrogate, genetic) in READINGS.items()
    }


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
            for surrogate, genetic in READINGS.values():
                compared = [
                    fmean(_studies(results, nth, metric, places[name]))
                    for name in (surrogate, genetic, "SA")
                ]
                cells.append(ranks.order(HEURISTICS, compared, metric in HIGHER))
            orders.append([METRICS[metric], on.name, *cells])
    return [
        *table(head, rows, left=2),
        "",
        *prose("robert2019-orders"),
        "",
        *table(["", "", *READINGS], orders, left=len(READINGS) + 2),
    ]


def _shares(results: list[dict[str, Any]], tables: list[Table]) -> list[str]:
    figures_of = (
        robert2019_claims.below_default,
        robert2019_claims.below_mean,
        robert2019_claims.below_mean_throughout,
        partial(robert2019_claims.below_mean_throughout, begin=robert2019_claims.DESIGN),
    )
    rows = []
    for nth, on in enumerate(tables):
        cells = []
        for figure in figures_of:
            of = [
                fmean(
                    figure(times, on)
                    for result in results
                    for times in studies.courses(result["tables"][nth]["methods"][place], on)
                )
                for place in _first()
            ]
            cells.append(f"{', '.join(f'{one:.0f}' for one in of)}: {round(fmean(of), 9):.1f}")
        rows.append([on.name, *cells])
    for data, (default, mean) in SHARES.items():
        rows.append([f"the paper's {data}", str(default), *([str(mean)] * 2), "-"])
    head = [
        "%, of SM, GA, SA: of all",
        "runs below the default",
        "runs below the mean",
        "studies below the mean throughout",
        "studies below it after the design",
    ]
    return table(head, rows)
