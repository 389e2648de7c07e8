"""Print, or write, how three samplers fare in the same five studies: five minutes on two cores.

python -m five_studies [--seeds 8] [--runs 40] [--write PAGE]
"""

from __future__ import annotations

import argparse
import platform
import random
import statistics
import subprocess
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from string import Template

import io_autotune as it
import optuna

from five_studies.studies import Params, Studied, with_data

OURS = "io-autotune"
GP = "Optuna, GP"
SAMPLERS: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "Optuna, TPE (default)": lambda seed: optuna.samplers.TPESampler(seed=seed),
    GP: lambda seed: optuna.samplers.GPSampler(seed=seed, deterministic_objective=False),
}
# Of a real command what is recommended is measured so often.
AGAIN = 7


@dataclass
class Outcome:
    """What came of a study: the true value of what is recommended, the average run, and seconds."""

    recommended: float
    average: float
    seconds: float


def _suggested(trial: optuna.Trial, space: dict[str, it.Parameter]) -> Params:
    params: Params = {}
    for name, parameter in space.items():
        if all(params.get(other) == value for other, value in (parameter.when or {}).items()):
            if parameter.kind == "integer":
                low, high, step = parameter.values[0], parameter.values[-1], parameter.values.step  # type: ignore[attr-defined]
                params[name] = trial.suggest_int(name, low, high, step=step)
            elif parameter.kind == "ordered" and isinstance(parameter.values[0], float):
                params[name] = trial.suggest_float(name, parameter.values[0], parameter.values[-1])
            elif parameter.kind == "ordered":
                # Powers of two: Optuna has them as their exponents.
                ends = [
                    value.bit_length() - 1 for value in (parameter.values[0], parameter.values[-1])
                ]
                params[name] = 2 ** trial.suggest_int(name, *ends)
            else:
                params[name] = trial.suggest_categorical(name, parameter.values)
    return params


def _by_optuna(
    one: Studied, sampler: optuna.samplers.BaseSampler, runs: int, rng: random.Random
) -> tuple[Params, list[Params]]:
    study = optuna.create_study(sampler=sampler)
    default = {}
    for name, parameter in one.space.items():
        whole = parameter.kind == "ordered" and isinstance(parameter.default, int)
        default[name] = parameter.default.bit_length() - 1 if whole else parameter.default
    # The default runs first, as with ours.
    study.enqueue_trial(
        {name: value for name, value in default.items() if not one.space[name].when}
    )
    asked: list[Params] = []

    def objective(trial: optuna.Trial) -> float:
        asked.append(_suggested(trial, one.space))
        return one.measure(asked[-1], rng)

    study.optimize(objective, n_trials=runs)
    return asked[study.best_trial.number], asked


def _by_ours(one: Studied, seed: int, runs: int, rng: random.Random) -> tuple[Params, list[Params]]:
    with it.Study(one.space, direction="seconds", runs=runs, seed=seed) as study:
        study.optimize(lambda params: one.measure(params, rng))
        return study.best_params, [run.params for run in study.runs]


def _outcome(one: Studied, sampler: str, seed: int, runs: int) -> Outcome:
    rng = random.Random(seed)
    started = time.perf_counter()
    if sampler == OURS:
        best, asked = _by_ours(one, seed, runs, rng)
    else:
        best, asked = _by_optuna(one, SAMPLERS[sampler](seed), runs, rng)
    seconds = time.perf_counter() - started
    if one.noise:
        return Outcome(one.truth(best), statistics.mean(map(one.truth, asked)), seconds)
    again = statistics.median(one.truth(best) for _ in range(AGAIN))
    return Outcome(again, seconds / runs, seconds)


def _interval(values: list[float]) -> str:
    """Return a mean with its 95 % interval, by the bootstrap."""
    rng = random.Random(1)
    means = sorted(statistics.mean(rng.choices(values, k=len(values))) for _ in range(2000))
    return f"{statistics.mean(values):.3g} ({means[50]:.3g}..{means[1949]:.3g})"


def table(runs: int, seeds: int) -> str:
    """Measure, and return a table."""
    keep, studied = with_data()
    lines = [
        "| study | sampler | recommended | average run | seconds |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    with keep:
        for one in studied:
            for sampler in [*SAMPLERS, OURS]:
                found = [_outcome(one, sampler, seed, runs) for seed in range(1, seeds + 1)]
                cells = [one.name, sampler, _interval([each.recommended for each in found])]
                # Of a real command, the time of a run has the sampler's own in it.
                cells += [_interval([each.average for each in found]) if one.noise else "-"]
                cells += [f"{statistics.mean(each.seconds for each in found):.1f}"]
                lines.append(f"| {' | '.join(cells)} |")
                print(lines[-1], flush=True)
        lines += ["", *(f"- `{one.name}`: {one.about}." for one in studied)]
    return "\n".join(lines)


def main() -> None:
    """Read the command line, measure, and print or write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--write", type=Path)
    asked = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    started = time.monotonic()
    measured = table(asked.runs, asked.seeds)
    if asked.write is not None:
        program = subprocess.run(
            ["io-autotune", "--version"], capture_output=True, text=True, check=True
        )
        prose = Template((Path(__file__).parent / "page.txt").read_text(encoding="utf-8"))
        page = prose.substitute(
            table=measured, runs=asked.runs, seeds=asked.seeds, optuna=optuna.__version__,
            program=program.stdout.strip(), python=platform.python_version(),
            minutes=f"{(time.monotonic() - started) / 60:.0f}",
        )  # fmt: skip
        asked.write.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
