"""Our methods and other optimisers on the same tables, under the same noise."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from peers.optimizers import PEERS, versions
from peers.program import Program
from peers.replay import run_methods, run_peers
from peers.report import (
    BEST_PEER,
    ENOUGH_SEEDS,
    FIGURES,
    Comparison,
    Estimate,
    on_table,
    overall,
    ratios,
)
from peers.tables import Table

from comparison.prose import prose
from comparison.simulate import Method

BUDGET = 50
"""Runs of a study."""
AIMS = {"recommended": 0.97, "common": 0.97, "average": 0.90}
"""What our default aims at, against the best peer of each table."""
OURS = Method("default", "default")
OF_A_SITE = [
    Method("default, a site's study", "default"),
    Method("robert2020, a site's study", "robert2020"),
]
"""With baseline runs, control runs and the bound on the loss."""
_GENETIC = "robert2020:noise="
_REGRESSION = "noise=regression,noise.regression"
_SURROGATE = "robert2019-surrogate:robert2019-surrogate.acquisition="
_ANNEALING = "robert2019-annealing:robert2019-annealing."
METHODS = [
    OURS,
    Method("robert2020: RGA, SEDR 10 %", "robert2020"),
    Method("robert2020: CGA", f"{_GENETIC}none"),
    Method("robert2020: RGA, averaging 10 %", f"{_GENETIC}resampling,noise.resampling=averaging"),
    Method(
        "robert2020: FGA, quadratic 5 %",
        f"robert2020:{_REGRESSION}=quadratic,noise.neighbour_share=0.05",
    ),
    Method(
        "robert2020: FGA, weighted 50 %",
        f"robert2020:{_REGRESSION}=weighted,noise.neighbour_share=0.5",
    ),
    Method(
        "robert2020: FRGA, SEDR 40 %, quadratic 5 %",
        f"{_GENETIC}both,noise.resampling=sedr,noise.regression=quadratic,"
        "noise.neighbour_share=0.05,resampling_share=0.4",
    ),
    Method("robert2019: surrogate, expected improvement", f"{_SURROGATE}expected_improvement"),
    Method(
        "robert2019: surrogate, probability of improvement",
        f"{_SURROGATE}probability_of_improvement",
    ),
    Method("robert2019: surrogate, posterior minimum", f"{_SURROGATE}posterior_minimum"),
    Method("robert2019: annealing, exponential", "robert2019-annealing"),
    Method(
        "robert2019: annealing, multiplicative",
        f"{_ANNEALING}cooling=multiplicative,robert2019-annealing.cooling.factor=1",
    ),
    Method(
        "robert2019: annealing, logarithmic",
        f"{_ANNEALING}cooling=logarithmic,robert2019-annealing.cooling.factor=1",
    ),
    Method(
        "robert2019: annealing, exponential, restarts",
        f"{_ANNEALING}restart=random,robert2019-annealing.restart.probability=0.05",
    ),
    Method("cao2018: annealing, linear", "cao2018-annealing"),
    Method(
        "cao2018: annealing, geometric",
        "cao2018-annealing:cao2018-annealing.cooling=geometric,cao2018-annealing.cooling.factor=0.9",
    ),
    Method("cao2018: genetic", "cao2018-genetic"),
    Method("cao2018: Bayesian", "cao2018-bayesian"),
    Method("random sampler", "random"),
]
"""The methods of the papers; what else the program has is added by its name."""


class Baselines:
    """The comparison, and its parts of the report."""

    def __init__(
        self,
        program: Program,
        tables: list[Table],
        *,
        seeds: int,
        method_seeds: int,
        peer_seeds: int,
        kept: Path,
        progress: Callable[[int, int], None],
    ) -> None:
        """Replays what is not kept; raises ReplayError if a replay fails."""
        methods = [*METHODS, *_others(program.methods(tables[0].path))]
        studies: dict[tuple[str, str], Any] = {}
        for some, of in (([OURS], seeds), (methods[1:], method_seeds), (OF_A_SITE, method_seeds)):
            texts = [method.text for method in some]
            site = some is OF_A_SITE
            found = run_methods(tables, texts, range(of), BUDGET, program, of_a_site=site)
            by_text = {method.text: method.name for method in some}
            studies |= {(table, by_text[text]): one for (table, text), one in found.items()}
        run = run_peers(
            tables, list(PEERS), range(peer_seeds), BUDGET, kept, program.threads, progress
        )
        studies |= run
        self._peers = [peer for peer in PEERS if all(run[table.name, peer] for table in tables)]
        self._methods = [method.name for method in (*methods, *OF_A_SITE)]
        comparison = Comparison(tables, self._methods, self._peers, studies, BUDGET)
        self._result = comparison.as_json()

    def summary(self) -> list[str]:
        """The summary."""
        lines = ["## In short", ""]
        ratios_ = self._result["ratios"]
        for figure, aim in AIMS.items():
            verdicts: dict[str, list[str]] = {}
            for peer in self._peers:
                estimate = Estimate(**ratios_[peer][figure]["all"])
                words = estimate.verdict() or f"too few seeds ({estimate.seeds}) to say"
                verdicts.setdefault(words, []).append(f"{peer} {estimate.value:.3f}")
            said = "; ".join(f"{words}: {', '.join(of)}" for words, of in verdicts.items())
            lines.append(f"- *{FIGURES[figure]}*, `default` divided by each peer: {said}.")
            if BEST_PEER in ratios_:
                best = Estimate(**ratios_[BEST_PEER][figure]["all"])
                reached = "reached" if best.value <= aim else "not reached"
                among = ", ".join(self._result["best_of"])
                lines[-1] += (
                    f" By {BEST_PEER} (of {among}): "
                    f"{best.value:.3f} ({best.low:.3f}-{best.high:.3f}) "
                    f"{best.verdict() or 'of too few seeds'}; the aim, {aim:.2f}, is {reached}."
                )
        return lines

    def section(self) -> list[str]:
        """The sections of the report."""
        result = self._result
        packages = {k: v for peer in self._peers for k, v in versions(peer).items()}
        made_with = ", ".join(f"{name} {number}" for name, number in sorted(packages.items()))
        lines = [
            *prose("methods", budget=str(BUDGET)),
            "",
            *overall(result, self._methods),
            *ratios(result, self._methods[1:], "###", ("common", "average")),
            "",
            *prose("peers", packages=made_with, enough=str(ENOUGH_SEEDS)),
            "",
            *overall(result, [OURS.name, *self._peers]),
            *ratios(result, [r for r in [*self._peers, BEST_PEER] if r in result["ratios"]], "###"),
        ]
        for table in result["tables"]:
            names = [*self._methods, *self._peers]
            lines += ["", f"### {table['name']}", "", *on_table(result, table, names)]
        return lines


def _others(known: list[str]) -> list[Method]:
    covered = {method.text.split(":")[0] for method in METHODS}
    return [Method(name, name) for name in known if name not in covered]
