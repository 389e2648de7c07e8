"""A study: runs that are asked for, told of, kept, and judged.

>>> study = Study({"x": Int(-10, 10, default=9), "y": Float(0, 1, levels=11)}, runs=30)
>>> study.optimize(lambda params: (params["x"] - 3) ** 2 + params["y"])
>>> study.best.params
{'x': 3, 'y': 0.0}
"""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping
from concurrent import futures
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from io_autotune import errors
from io_autotune.process import Process
from io_autotune.space import Float, Int, Parameter, Params, Space, several

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Best", "Float", "Gain", "Int", "Run", "Study"]

Direction = Literal["minimize", "maximize", "seconds"]
Function = Callable[[Params], float]
Catch = tuple[type[Exception], ...]
Callback = Callable[["Study", "Run"], None]


@dataclass(frozen=True)
class Run:
    """A run: `state` is open, complete, failed or cut; `value` is a bound if it was cut."""

    id: int
    params: Params
    role: str = "search"
    state: str = "open"
    value: float | None = None


@dataclass(frozen=True)
class Best:
    """What is expected to be the best, and the mean of its `n` runs with its interval."""

    params: Params
    value: float | None
    n: int
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Gain:
    """How much better the best is than the default: a share of it, or a difference (`unit`).

    `verdict` is better, worse, no_effect or not_shown. The interval holds however often one looks.
    """

    verdict: str
    unit: str
    estimate: float | None
    low: float | None
    high: float | None
    level: float
    runs_needed: int | None
    reason: str


class Study(AbstractContextManager["Study"]):
    """A study of a space, closed at the end of a `with`, by the installed `io-autotune`.

    Args:
        space: Parameters by name.
        constraints: Such as `"threads <= cores"`, `{"forbid": {"cache": "on", "direct": True}}`.
        storage: A file that keeps the runs, whole at any moment; the same study in it goes on.
            Without one they are kept until the process ends.
        name: The study's name in that file.
        direction: `minimize` or `maximize` any number; `seconds` are minimised as times, whose
            noise and effects are ratios.
        runs: How many runs are planned, those in the storage among them.
        compare: So many of them, the last, compare the best with the default, for a `gain`.
        seed: Equal seeds and values have equal runs.
    """

    def __init__(
        self,
        space: Mapping[str, Parameter],
        *,
        constraints: Iterable[str | Mapping[str, Any]] = (),
        storage: str | Path | None = None,
        name: str = "study",
        direction: Direction = "minimize",
        runs: int = 50,
        compare: int = 0,
        seed: int = 1,
    ) -> None:
        """Begin a study, or go on with the one of this name in the storage."""
        if direction not in ("minimize", "maximize", "seconds"):
            raise ValueError(f"direction {direction!r}: it is minimize, maximize or seconds")
        if "://" in str(storage):
            why = f"storage={str(storage)!r} is an address: give a file's path, such as 'runs'"
            raise errors.StorageError(why)
        self.space = Space(space, constraints)
        self.name, self.direction, self._seed = name, direction, seed
        # Without a storage, one that ends with the study.
        self._own = tempfile.TemporaryDirectory()
        self.storage = Path(self._own.name) / "runs" if storage is None else Path(storage)
        self._plan = (runs, compare)
        self._process = self._start()

    def _start(self) -> Process:
        runs, compare = self._plan
        options = {"--runs": runs, "--compare": compare, "--seed": self._seed, "--name": self.name}
        options |= {"--goal": self.direction, "--storage": self.storage.absolute()}
        words = [f"{option}={value}" for option, value in options.items()]
        process = Process(self.space.toml(), words)
        for hint in process.hints:
            warnings.warn(hint["says"], stacklevel=3)
        return process

    def plan(self, runs: int, compare: int | None = None) -> None:
        """Change how many runs there are in all, and how many of them compare."""
        plan = (runs, self._plan[1] if compare is None else compare)
        if plan != self._plan and not self._process.closed:
            self._process.close()
            self._plan = plan
            self._process = self._start()

    def ask(self) -> Run:
        """Return the next run: tell how it ended. Runs that were open at a kill come first.

        Raises `Finished` when all planned runs were asked for, and `MustWait` where the comparison
        waits for open runs.
        """
        answer = self._process.ask({"ask": True})
        match answer:
            case {"id": int(id_), "parametrization": labels}:
                return Run(id_, self.space.decode(labels))
            case {"wait": why}:
                raise errors.MustWait(str(why))
            case {"done": why}:
                raise errors.Finished(str(why))
        raise errors.Finished(f"{answer.get('error')}; or: study.plan({2 * self._plan[0]})")

    def tell(
        self,
        run: Run | int,
        value: float | None = None,
        *,
        failed: bool = False,
        cut: bool = False,
        measures: Mapping[str, float] | None = None,
    ) -> None:
        """Tell how a run ended: its value, or that it failed, or was cut short at this value.

        A value that is no number is a failure, as in Optuna.
        """
        id_ = run if isinstance(run, int) else run.id
        told: dict[str, object] = {"id": id_}
        if failed or (value is not None and math.isnan(value)):
            told["failed"] = True
        elif value is None or math.isinf(value):
            why = f"run {id_}: {value} is not finite: tell a number, or failed=True"
            raise errors.ValueRefused(why)
        else:
            told |= {"value": float(value), "censored": cut}
        if measures:
            told["measures"] = dict(measures)
        self._checked({"tell": told})

    def add(self, params: Mapping[str, Any], value: float | None = None) -> int:
        """Add a run that was not asked for, open without a value; return its id."""
        line: dict[str, object] = {"parametrization": self.space.encode(params)}
        if value is not None:
            line["value"] = float(value)
        return int(self._checked({"add": line})["id"])

    def _checked(self, line: dict[str, object]) -> dict[str, Any]:
        answer = self._process.ask(line)
        said = answer.get("error")
        if said is None:
            return answer
        kinds: list[tuple[str, type[errors.Error]]] = [
            ("told of before", errors.ToldTwice),
            ("there is no run", errors.UnknownRun),
            ("the parametrization", errors.SpaceError),
            ("of the budget", errors.Finished),
        ]
        raise next((kind for word, kind in kinds if word in said), errors.ValueRefused)(said)

    def optimize(
        self,
        function: Function,
        runs: int | None = None,
        jobs: int = 1,
        *,
        compare: int | None = None,
        catch: Catch = (),
        executor: futures.Executor | None = None,
        callback: Callback | None = None,
    ) -> None:
        """Run a function of the params until the study has `runs` runs in all.

        The same call goes on after a kill. The function returns its value, or raises `Failed` or
        `Cut(bound)`. Other exceptions are failures if `catch` names them, else they end the study.

        Args:
            function: What is minimised or maximised.
            runs: All runs, those in the storage among them; by default those of the study's plan.
            jobs: So many at once, in threads.
            compare: So many of the runs, the last, compare the best with the default.
            catch: Exceptions that are failures.
            executor: Runs the function, for example a `ProcessPoolExecutor(jobs)`.
            callback: Called with the study and each run that has ended.
        """
        self.plan(self._plan[0] if runs is None else runs, compare)
        if len([run for run in self.runs if run.state != "open"]) >= self._plan[0]:
            return
        own = None if executor or jobs == 1 else futures.ThreadPoolExecutor(jobs)
        pool = executor or own
        submit = pool.submit if pool else _here
        open_runs: dict[futures.Future[float], Run] = {}
        try:
            while True:
                while len(open_runs) < jobs and (run := self._next(bool(open_runs))):
                    open_runs[submit(function, run.params)] = run
                if not open_runs:
                    return
                done, _ = futures.wait(open_runs, return_when=futures.FIRST_COMPLETED)
                ended = {future: open_runs.pop(future) for future in done}
                self._tell_of(ended, (errors.Failed, *catch), callback)
        except BaseException:
            # What is open is asked for again by the next call.
            self._process.restart()
            raise
        finally:
            if own is not None:
                own.shutdown(wait=False, cancel_futures=True)

    def _tell_of(
        self, ended: Mapping[futures.Future[float], Run], catch: Catch, callback: Callback | None
    ) -> None:
        lost = None
        for future, run in ended.items():
            try:
                one = self._ended(run, future, catch)
                if callback is not None:
                    callback(self, one)
            except Exception as error:  # noqa: BLE001 - it leaves once the others are told of
                lost = lost or error
        if lost is not None:
            raise lost

    def _next(self, some_open: bool) -> Run | None:
        try:
            return self.ask()
        except (errors.Finished, errors.MustWait) as end:
            if isinstance(end, errors.MustWait) and not some_open:
                raise
            return None

    def _ended(self, run: Run, future: futures.Future[float], catch: Catch) -> Run:
        value, is_cut = None, False
        try:
            value = float(future.result())
        except errors.Cut as cut:
            value, is_cut = cut.bound, True
        except futures.BrokenExecutor:
            raise  # The run is asked for again, as after each exception that is not named.
        except catch:
            pass
        try:
            self.tell(run, value, failed=value is None, cut=is_cut)
        except errors.ValueRefused as refused:
            warnings.warn(f"{refused}: it counts as failed", stacklevel=2)
            self.tell(run, failed=True)
        return next(one for one in self.runs if one.id == run.id)

    @property
    def runs(self) -> list[Run]:
        """All runs, in the order in which they were asked for."""
        listed, decode = self._process.ask({"runs": True})["runs"], self.space.decode
        return [
            Run(one["id"], decode(one["parametrization"]), one["role"], one["state"], one["value"])
            for one in listed
        ]

    @property
    def best(self) -> Best:
        """What is expected to be the best, by all runs; the default before a run completes."""
        found = self._process.ask({"recommend": True})
        interval = found["interval"]
        ends = None if interval is None else (float(interval[0]), float(interval[1]))
        return Best(self.space.decode(found["parametrization"]), found["mean"], found["n"], ends)

    @property
    def best_params(self) -> Params:
        """The values of the best."""
        return self.best.params

    @property
    def best_value(self) -> float | None:
        """The mean value of the best's runs."""
        return self.best.value

    @property
    def default(self) -> Params:
        """The default: the first run."""
        absent: Params = {}
        for name, one in self.space.parameters.items():
            when = (one.when or {}).items()
            if all(absent.get(other) in several(values) for other, values in when):
                absent[name] = one.default
        return absent

    @property
    def gain(self) -> Gain | None:
        """How much better the best is than the default; none of a study that does not compare."""
        found = self._process.ask({"recommend": True}).get("gain")
        return found and Gain(**{field: found[field] for field in Gain.__dataclass_fields__})

    def importance(self) -> dict[str, float]:
        """Return the share of the values' spread that each parameter explains in all.

        Empty while there are too few runs, or no parameter explains them.
        """
        shares = self._process.ask({"importance": True})["importance"]
        return {name: share["in_all"] for name, share in shares.items()}

    def to_pandas(self) -> pd.DataFrame:
        """Return a row for each run: id, role, state, value and the params. Needs pandas."""
        try:
            import pandas as pd  # noqa: PLC0415 - optional
        except ImportError as error:
            raise errors.Error("this needs pandas: pip install 'io-autotune[pandas]'") from error
        rows = [vars(run) | run.params for run in self.runs]
        return pd.DataFrame(rows, columns=["id", "role", "state", "value", *self.space.parameters])

    def close(self) -> None:
        """End the process; what was told is kept in the storage."""
        self._process.close()

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


def _here(function: Function, params: Params) -> futures.Future[float]:
    future: futures.Future[float] = futures.Future()
    try:
        future.set_result(function(params))
    except Exception as error:  # noqa: BLE001 - it leaves with the result
        future.set_exception(error)
    return future
