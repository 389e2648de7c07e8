"""Our methods and other optimisers on the same tables, under the same noise."""

from collections.abc import Callable
from pathlib import Path

from peers.optimizers import COSTLY, PEERS
from peers.program import Program
from peers.replay import Timed, run_methods, run_peers
from peers.report import (
    BEST_PEER,
    FIGURES,
    Comparison,
    Estimate,
    overall,
    ratios,
    ratios_by_table,
)

from comparison.markdown import table
from comparison.simulate import Method
from comparison.split import Part, is_of_the_tree

BUDGET = 50
"""Runs of a study."""
AIMS = {"recommended": 0.97, "common": 0.97, "average": 0.90}
"""What our default aims at, against the best peer of each table."""
FAILED_AIM = 1.0 / 3.0
"""The same of failed runs, against random's."""
RANDOM = "random"
OURS = Method("default", "default")
_ALIAS = "surrogate-genetic"
"""Another name of it."""
OF_A_SITE = [
    Method("default, a site's study", "default"),
    Method("robert2020, a site's study", "robert2020"),
]
"""With four baseline runs, runs between trials, and the regret budget."""
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
    """The comparison on one part's tables, and its sections of the report."""

    def __init__(
        self,
        program: Program,
        part: Part,
        *,
        seeds: int,
        method_seeds: int,
        peer_seeds: int,
        costly_peer_seeds: int,
        kept: Path,
        progress: Callable[[int, int], None],
    ) -> None:
        """Replays what is not kept; raises ReplayError if a replay fails."""
        self._title = part.title
        peers = [peer for peer in PEERS if peer not in COSTLY]
        costly = [peer for peer in PEERS if peer in COSTLY]
        run: dict[tuple[str, str], list[Timed]] = {}
        for names, of in ((peers, peer_seeds), (costly, costly_peer_seeds)):
            run |= run_peers(part.tables, names, range(of), BUDGET, kept, program.threads, progress)
        of_all = [on for on in part.tables if all(run[on.name, peer] for peer in peers)]
        self.tables = of_all or part.tables
        """Those that each peer has studies on, or all, without peers, where there are none. Of a
        costly one there are few studies, or none: then it is left out."""
        costly = [peer for peer in costly if all(run[on.name, peer] for on in self.tables)]
        self.peers = [*peers, *costly] if of_all else []
        self.left_out = [on.name for on in part.tables if on not in self.tables]
        tables = self.tables
        methods = [*METHODS, *_others(program.methods(tables[0].path))]
        studies: dict[tuple[str, str], list[Timed]] = {}
        for some, of in (([OURS], seeds), (methods[1:], method_seeds), (OF_A_SITE, method_seeds)):
            texts = [method.text for method in some]
            site = some is OF_A_SITE
            found = run_methods(tables, texts, range(of), BUDGET, program, of_a_site=site)
            by_text = {method.text: method.name for method in some}
            studies |= {(table, by_text[text]): one for (table, text), one in found.items()}
        studies |= run
        self.seconds = {
            peer: sum(timed.computing for on in tables for timed in run[on.name, peer])
            for peer in self.peers
        }
        """What all studies of each took."""
        self._methods = [method.name for method in (*methods, *OF_A_SITE)]
        self._comparison = Comparison(tables, self._methods, self.peers, studies, BUDGET)
        self._result = self._comparison.as_json()

    def summary(self) -> list[str]:
        """What to read first."""
        lines = [f"### {self._title}: in short", ""]
        if not self.peers:
            return [*lines, "There are no studies of other optimisers."]
        ratios_ = self._result["ratios"]
        for figure, aim in AIMS.items():
            verdicts: dict[str, list[str]] = {}
            for peer in self.peers:
                estimate = Estimate(**ratios_[peer][figure]["all"])
                words = estimate.verdict() or f"too few seeds ({estimate.seeds}) to say"
                verdicts.setdefault(words, []).append(f"{peer} {estimate.value:.3f}")
            said = "; ".join(f"{words}: {', '.join(of)}" for words, of in verdicts.items())
            lines.append(f"- *{FIGURES[figure]}*, `default` divided by each peer: {said}.")
            if BEST_PEER in ratios_:
                best = Estimate(**ratios_[BEST_PEER][figure]["all"])
                among = ", ".join(self._result["best_of"])
                lines[-1] += f" By {BEST_PEER} (of {among}): {_aimed(best, aim)}."
        failures = self._comparison.failures(OURS.name, RANDOM)
        said = "random's runs do not fail" if failures is None else _aimed(failures, FAILED_AIM)
        lines.append(f"- *failed runs*, those of `default` divided by random's: {said}.")
        return lines

    def section(self) -> list[str]:
        """The figures."""
        result, title = self._result, self._title
        baselines = [one for one in [*self.peers, BEST_PEER] if one in result["ratios"]]
        lines = [
            f"### {title}: all methods",
            "",
            *overall(result, [*self._methods, *self.peers]),
            "",
            f"### {title}: default divided by",
            "",
            *ratios(result, [*baselines, *self._methods[1:]]),
        ]
        if baselines:
            heading = f"### {title}: default divided by"
            lines += ratios_by_table(result, baselines, heading, self._marked)
        return [*lines, *self._failures()]

    def _failures(self) -> list[str]:
        names = [OURS.name, *self.peers]
        by_table = [
            (of["name"], [of["figures"][name]["failed"]["value"] for name in names])
            for of in self._result["tables"]
        ]
        rows = [
            [self._marked(on), *(f"{one:.1f}" for one in failed)]
            for on, failed in by_table
            if any(failed)
        ]
        if not rows:
            return []
        title = f"### {self._title}: failed runs of {BUDGET}, where runs fail"
        return ["", title, "", *table(["", *names], rows)]

    def _marked(self, name: str) -> str:
        on = next(on for on in self.tables if on.name == name)
        return name if is_of_the_tree(on) else f"{name} \\*"


def _aimed(estimate: Estimate, aim: float) -> str:
    reached = "reached" if estimate.value <= aim else "not reached"
    return (
        f"{estimate.value:.3f} ({estimate.low:.3f}-{estimate.high:.3f}) "
        f"{estimate.verdict() or 'of too few seeds'}; the aim, {aim:.2f}, is {reached}"
    )


def _others(known: list[str]) -> list[Method]:
    covered = {method.text.split(":")[0] for method in METHODS} | {_ALIAS}
    return [Method(name, name) for name in known if name not in covered]
