"""Studies of functions, by the real program."""

import itertools
import math
import os
import signal
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import io_autotune as it
import matplotlib.pyplot as plt
import pytest
from io_autotune import plots, process

SPACE = {
    "x": it.Int(-10, 10, default=9),
    "rate": it.Float(1e-4, 1e-1, log=True, levels=7),
    "cache": it.Categorical(["off", "on"]),
    "buffer": it.Ordered(["64K", "1M", "16M"], when={"cache": "on"}),
    "direct": it.Categorical([False, True]),
}


def value(params: it.space.Params) -> float:
    """Return the least at x 3, rate 0.001, cache on, buffer 16M."""
    of_cache = {"64K": 2.0, "1M": 1.0, "16M": 0.0}[params["buffer"]] if "buffer" in params else 3.0
    return (params["x"] - 3) ** 2 / 20 + abs(math.log10(params["rate"]) + 3) + of_cache


@pytest.fixture
def study() -> Iterator[it.Study]:
    with it.Study(SPACE, constraints=[{"forbid": {"cache": "on", "direct": True}}], runs=40) as one:
        yield one


def test_a_function_is_minimised_and_the_default_is_first(study: it.Study) -> None:
    study.optimize(value)
    runs = study.runs
    assert len(runs) == 40
    first = {"x": 9, "rate": 0.00316228, "cache": "off", "direct": False}
    assert runs[0].params == study.default == first
    assert runs[0].role == "baseline"
    assert all(("buffer" in run.params) == (run.params["cache"] == "on") for run in runs)
    assert not any(run.params["cache"] == "on" and run.params["direct"] for run in runs)
    assert all(type(run.params["direct"]) is bool for run in runs)
    assert study.best_params["cache"] == "on"
    assert study.best_value is not None
    assert study.best_value < 1.0
    assert study.gain is None


def test_large_is_the_opposite_of_small() -> None:
    with it.Study(SPACE, runs=25) as small, it.Study(SPACE, runs=25, direction="maximize") as large:
        small.optimize(value)
        large.optimize(lambda params: -value(params))
        assert [run.params for run in small.runs] == [run.params for run in large.runs]
        assert small.best_params == large.best_params


def test_failed_and_cut_runs_are_told_as_they_ended(study: it.Study) -> None:
    def function(params: it.space.Params) -> float:
        if params["x"] > 5:
            raise it.Failed
        if params["cache"] == "off":
            raise it.Cut(2.0)
        return math.nan if params["buffer"] == "64K" else value(params)

    study.optimize(function)
    states = {run.state for run in study.runs}
    assert states == {"complete", "failed", "cut"}
    for run in study.runs:
        if run.state == "cut":
            assert (run.params["cache"], run.value) == ("off", 2.0)
        if run.params["x"] > 5 or run.params.get("buffer") == "64K":
            assert run.state == "failed" or run.params["cache"] == "off"


def test_an_exception_ends_the_study_unless_it_is_named(study: it.Study) -> None:
    def function(params: it.space.Params) -> float:
        raise ZeroDivisionError(params["x"])

    with pytest.raises(ZeroDivisionError):
        study.optimize(function)
    assert [run.state for run in study.runs] == ["open"]
    study.optimize(function, runs=5, catch=(ZeroDivisionError,))
    assert [run.state for run in study.runs] == ["failed"] * 5


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
@pytest.mark.parametrize("jobs", [1, 2])
def test_after_an_exception_the_same_call_goes_on_with_what_was_open(
    study: it.Study, error: type[BaseException], jobs: int
) -> None:
    """The default, which comes first, is not used up either."""
    calls = itertools.count()

    def function(params: it.space.Params) -> float:
        if next(calls) == 0:
            raise error
        return value(params)

    with pytest.raises(error):
        study.optimize(function, runs=6, jobs=jobs)
    study.optimize(function, runs=6, jobs=jobs)
    assert [run.state for run in study.runs] == ["complete"] * 6
    assert study.runs[0].params == study.default


def test_an_interrupt_in_an_exchange_leaves_no_answer_behind(study: it.Study) -> None:
    study.ask()
    stdout = study._process._process.stdout

    class Interrupted:
        def readline(self) -> str:
            raise KeyboardInterrupt

        def close(self) -> None:
            stdout.close()  # type: ignore[union-attr]

    study._process._process.stdout = Interrupted()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        study.importance()
    assert study.importance() == {}
    assert study.ask().id == 1


def test_a_value_that_no_run_has_fails_the_run_and_is_said() -> None:
    with it.Study(SPACE, runs=3, direction="seconds") as study:
        with pytest.warns(UserWarning, match="not above zero"):
            study.optimize(lambda _: 0.0)
        assert [run.state for run in study.runs] == ["failed"] * 3


def test_what_is_no_number_is_refused_and_the_study_goes_on(study: it.Study) -> None:
    run = study.ask()
    with pytest.raises(it.ValueRefused, match="no finite number"):
        study.tell(run, 1.0, measures={"bytes": math.nan})
    with pytest.raises(it.ValueRefused, match="no finite number"):
        study.add(study.default, math.nan)
    study.tell(run, 1.0)
    study.close()
    with pytest.raises(it.Error, match="the study is closed"):
        study.ask()


def test_one_exception_throws_no_finished_value_away(study: it.Study) -> None:
    def function(params: it.space.Params) -> float:
        if params == study.default:
            raise ZeroDivisionError
        return 1.0

    class Together(Executor):
        """Ends all at once, so that they are seen together."""

        def submit(self, fn: Any, /, *args: Any, **_: Any) -> Any:  # noqa: ANN401
            future: Future[Any] = Future()
            try:
                future.set_result(fn(*args))
            except ZeroDivisionError as error:
                future.set_exception(error)
            return future

    with pytest.raises(ZeroDivisionError):
        study.optimize(function, runs=4, jobs=4, executor=Together())
    assert [run.state for run in study.runs] == ["open", *["complete"] * 3]


def test_one_at_a_time_runs_in_the_thread_that_called(study: it.Study) -> None:
    threads = []

    def function(params: it.space.Params) -> float:
        threads.append(threading.current_thread())
        return value(params)

    study.optimize(function, runs=3)
    assert threads == [threading.current_thread()] * 3


def test_a_study_that_has_compared_has_its_gain_and_its_choice_when_it_goes_on(
    tmp_path: Path,
) -> None:
    storage = tmp_path / "runs"
    with it.Study(SPACE, runs=60, compare=24, direction="seconds", storage=storage) as study:
        noisy(study)
        best, gain = study.best, study.gain
    with it.Study(SPACE, runs=60, direction="seconds", storage=storage) as study:
        assert (study.best, study.gain) == (best, gain)


def test_a_narrow_range_has_all_its_levels() -> None:
    assert len(it.Float(1.0, 1.000001, levels=11).values) == 11
    assert len(it.Float(0, 1, levels=11).values) == 11


def test_names_with_dots_are_keys_of_constraints() -> None:
    space = it.space.Space({"a.b": it.Int(1, 2)}, [{"forbid": {"a.b": 1}}])
    assert tomllib.loads(space.toml())["constraints"] == [{"forbid": {"a.b": [1]}}]


def test_several_run_at_once_in_threads(study: it.Study) -> None:
    together = threading.Barrier(2)

    def function(params: it.space.Params) -> float:
        together.wait(timeout=30)
        return value(params)

    study.optimize(function, runs=20, jobs=2)
    assert len(study.runs) == 20


def test_several_run_at_once_in_processes(study: it.Study) -> None:
    with ProcessPoolExecutor(2) as executor:
        study.optimize(value, runs=8, jobs=2, executor=executor)
    assert [run.state for run in study.runs] == ["complete"] * 8


def noisy(study: it.Study) -> it.Study:
    """Run a noisy function of the study's runs, with a planted gain of about half."""
    count = itertools.count()
    study.optimize(lambda params: (1.5 + value(params)) * (1 + 0.02 * math.sin(7 * next(count))))
    return study


def test_the_gain_has_an_interval_which_covers_the_truth() -> None:
    with it.Study(SPACE, runs=60, compare=24, direction="seconds") as study:
        noisy(study)
        gain = study.gain
        assert gain is not None
        assert (gain.verdict, gain.unit) == ("better", "share")
        truth = 1 - (1.5 + value(study.best_params)) / (1.5 + value(study.default))
        assert gain.low is not None
        assert gain.high is not None
        assert gain.low < truth < gain.high


def test_no_gain_is_claimed_where_there_is_none() -> None:
    with it.Study({"x": it.Int(1, 5)}, runs=40, compare=20) as study:
        study.optimize(lambda _: 3 + math.sin(7 * len(study.runs)))
        gain = study.gain
        assert gain is not None
        assert gain.verdict in ("not_shown", "no_effect")


def test_runs_are_asked_for_and_told_in_any_order(study: it.Study) -> None:
    runs = [study.ask() for _ in range(3)]
    assert len({str(run.params) for run in runs}) == 3
    study.tell(runs[2], 2.5)
    study.tell(runs[0].id, failed=True)
    study.tell(runs[1], 9, cut=True)
    assert [run.state for run in study.runs] == ["failed", "cut", "complete"]
    assert study.best.params == runs[2].params


def test_a_run_of_another_day_is_added_and_learnt_from(study: it.Study) -> None:
    best = {"x": 3, "rate": 0.001, "cache": "on", "buffer": "16M", "direct": False}
    study.add(best, value(best))
    assert study.best_params == best


def test_what_is_wrong_is_an_exception_that_says_what_to_do(study: it.Study) -> None:
    run = study.ask()
    study.tell(run, 1.0)
    for error, words, call in [
        (it.ToldTwice, "each run once", lambda: study.tell(run, 2.0)),
        (it.UnknownRun, "tell the id", lambda: study.tell(77, 2.0)),
        (it.ValueRefused, "failed=True", lambda: study.tell(run)),
        (it.ValueRefused, "not finite", lambda: study.tell(run, math.inf)),
        (it.SpaceError, "none of its values", lambda: study.add({"x": 99})),
        (it.SpaceError, "there is no parameter", lambda: study.add({"y": 9})),
        (it.SpaceError, "cannot be added", lambda: study.add({"x": 9})),
        (it.SpaceError, "none of its values", lambda: it.Int(1, 3, default=4)),
        (it.SpaceError, "low is at most high", lambda: it.Int(3, 1)),
        (it.SpaceError, "above zero", lambda: it.Float(0, 1, log=True)),
        (it.SpaceError, "at least one value", lambda: it.Ordered([])),
        (it.SpaceError, "with spaces", lambda: it.Space({}, ["a<=b"])),
        (
            it.SpaceError,
            "^parameter a exists under",
            lambda: it.Study({"a": it.Int(1, 2, when={"b": 1}), "b": it.Int(1, 2)}),
        ),
        (it.SpaceError, "letters", lambda: it.Study({"a b": it.Int(1, 2)})),
        (it.SpaceError, "given twice|twice", lambda: it.Study({"a": it.Categorical(["1", "1"])})),
        (ValueError, "minimize, maximize", lambda: it.Study(SPACE, direction="min")),  # type: ignore[arg-type]
    ]:
        with pytest.raises(error, match=words):
            call()  # type: ignore[no-untyped-call]
    study.plan(1)
    with pytest.raises(it.Finished, match=r"study.plan\(2\)"):
        study.ask()


def test_the_comparison_waits_for_open_runs() -> None:
    with pytest.warns(UserWarning, match="cannot show"):
        study = it.Study(SPACE, runs=6, compare=4)
    with study:
        runs = [study.ask() for _ in range(2)]
        with pytest.raises(it.MustWait, match="tell of the open runs"):
            study.ask()
        for run in runs:
            study.tell(run, value(run.params))
        study.optimize(value, jobs=2)
        assert len(study.runs) >= 3


def test_another_version_of_the_program_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "io-autotune-other"
    other.write_text("#!/bin/sh\necho io-autotune 0.1.7\n")
    other.chmod(0o755)
    monkeypatch.setattr(process, "own_version", lambda: "0.3.0")
    monkeypatch.setenv("IO_AUTOTUNE_PROGRAM", str(other))
    with pytest.raises(it.OtherVersion, match="this package is of version"):
        it.Study(SPACE)


def test_a_program_that_is_not_there_is_said_to_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IO_AUTOTUNE_PROGRAM", "/nonexistent/io-autotune")
    with pytest.raises(it.ProgramNotFound, match="IO_AUTOTUNE_PROGRAM="):
        it.Study(SPACE)


def test_a_program_that_dies_is_an_exception(study: it.Study) -> None:
    os.kill(study._process._process.pid, signal.SIGKILL)
    with pytest.raises(it.EngineEnded, match="kept in the storage"):
        study.ask()


CHILD = """
import io_autotune as it, os, sys
study = it.Study({"x": it.Int(-10, 10, default=9)}, storage=sys.argv[1], name="mine", runs=12)
def function(params):
    if len(study.runs) == int(sys.argv[2]):
        os.kill(os.getpid(), 9)
    return (params["x"] - 3) ** 2
study.optimize(function)
print(study.runs)
"""


def test_a_study_that_was_killed_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    def run(storage: str, at: int) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-c", CHILD, str(tmp_path / storage), str(at)]
        env = {**os.environ, "PYTHONPATH": str(Path(it.__file__).parents[1])}
        return subprocess.run(words, capture_output=True, text=True, check=False, env=env)

    whole = run("whole", 0)
    assert whole.returncode == 0, whole.stderr
    for at in (1, 5, 12):
        assert run("killed", at).returncode == -signal.SIGKILL
    again = run("killed", 0)
    assert again.stdout == whole.stdout, again.stderr


def test_a_storage_that_cannot_be_used_is_an_exception_that_says_why(tmp_path: Path) -> None:
    storage = tmp_path / "runs"
    with (
        it.Study(SPACE, storage=storage),
        pytest.raises(it.StorageError, match=r"has it open.*study.close\(\)"),
    ):
        it.Study(SPACE, storage=storage)
    # In the words of this package, and without the file that nobody has seen.
    with pytest.raises(it.StorageError, match="another space: its parameters were x, rate") as said:
        it.Study({"x": it.Int(1, 2)}, storage=storage)
    assert "give this one another name=" in str(said.value)
    assert ".toml" not in str(said.value)
    assert "--" not in str(said.value)
    with pytest.raises(it.StorageError, match="another space: x has other values"):
        it.Study({**SPACE, "x": it.Int(-10, 11, default=9)}, storage=storage)
    with pytest.raises(it.StorageError, match="another direction: minimize"):
        it.Study(SPACE, storage=storage, direction="maximize")
    with pytest.raises(it.StorageError, match="give a file's path"):
        it.Study(SPACE, storage="sqlite:///runs.db")
    it.Study({"x": it.Int(1, 2)}, storage=storage, name="another").close()
    storage.write_text("notes\n")
    with pytest.raises(it.StorageError, match=r"line 1 is none .* another storage=$"):
        it.Study(SPACE, storage=storage)
    with pytest.raises(it.StorageError, match="No such file"):
        it.Study(SPACE, storage=tmp_path / "none" / "runs")


def test_runs_are_a_data_frame(study: it.Study) -> None:
    study.optimize(value, runs=6)
    frame = study.to_pandas()
    assert list(frame.columns) == ["id", "role", "state", "value", *SPACE]
    assert len(frame) == 6
    assert frame["value"].notna().all()
    assert frame.loc[0, "x"] == 9


def test_without_pandas_it_is_said_what_to_install(
    study: it.Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(it.Error, match=r"pip install 'io-autotune\[pandas\]'"):
        study.to_pandas()


def test_too_few_runs_for_a_claim_are_warned_of_before_the_first() -> None:
    with pytest.warns(UserWarning, match="cannot show that it is; about 28 runs can") as warned:
        it.Study(SPACE, runs=12, compare=6).close()
    assert warned[0].filename == __file__
    with it.Study(SPACE) as study:
        with pytest.warns(UserWarning, match="12 runs, of which 6 compare"):
            study.optimize(value, runs=12, compare=6)
        assert study.gain is not None
        assert study.gain.verdict == "not_shown"
        assert study.gain.runs_needed is not None
    with pytest.warns(UserWarning, match="50 of 40 runs cannot compare"):
        it.Study(SPACE, runs=40, compare=50).close()


def test_it_is_a_small_package() -> None:
    """Blank lines and comments are free; what grows further belongs into the program."""
    sources = Path(it.__file__).parent.glob("*.py")
    lines = [line.strip() for one in sources for line in one.read_text().splitlines()]
    assert sum(bool(line) and not line.startswith("#") for line in lines) <= 900


def test_what_the_parameters_explain(study: it.Study) -> None:
    assert study.importance() == {}
    study.optimize(value)
    shares = study.importance()
    assert shares["x"] > shares.get("direct", 0.0)


def test_every_plot_is_drawn() -> None:
    with it.Study(SPACE, runs=60, compare=24, direction="seconds") as study:
        with pytest.raises(it.Error, match="compare=20"):
            plots.gain(study)
        noisy(study)
        for plot in (plots.history, plots.convergence, plots.importance, plots.gain):
            axes = plot(study)
            assert study.name in axes.get_title()
            assert axes.get_xlabel()
            assert axes.lines or axes.patches
        plt.close("all")
