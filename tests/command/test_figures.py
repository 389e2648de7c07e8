"""One quantity has one figure, whichever screen shows it: of the same studies, all are read."""

from __future__ import annotations

import csv
import html
import json
import re
import statistics
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from command.jobs import End, Json, variables
from command.place import Place
from command.service import ALICE, ROOT, Service, service

TREE = Path(__file__).resolve().parents[2]
PYTHON = TREE / "build/venv-report/bin/python"
"""The report's interpreter, which `make test-command` has made."""
SURE = "figures-sure"
EARLY = "figures-early"
MAXIMISED = "figures-rate"


@dataclass(frozen=True)
class Screens:
    """All that is said of one study."""

    study: Json
    """``status --json``: what the others are compared with."""
    status: str
    show: str
    page: str
    """``report --mine``, as text: the study's part of it."""
    history: list[Json]
    explained: str
    """Of its last run."""
    nightly: Json
    row: Mapping[str, str]
    """Of ``studies.csv``."""
    nightly_page: str
    mail: str


def text_of(page: str) -> str:
    """Return what a browser shows of a page."""
    page = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    return html.unescape(re.sub(r"<[^>]*>", " ", page))


def seconds(tuned: float, default: float) -> Callable[[Json], End]:
    """Return how long a job takes by what it was given, with a little noise."""

    def end(answer: Json) -> End:
        noise = 1.0 + 0.01 * (answer["run_id"] * 7 % 11)
        return End(seconds=(tuned if variables(answer["delivery"]) else default) * noise)

    return end


def rate(answer: Json) -> End:
    """Return an end whose rate, of which more is better, is higher when the job is tuned."""
    noise = 1.0 + 0.01 * (answer["run_id"] * 5 % 7)
    told = (90.0 if variables(answer["delivery"]) else 50.0) * noise
    return End(seconds=20.0 + noise, measures={"objective.rate": told})


def until_claimed(served: Service, app: str, end: Callable[[Json], End]) -> None:
    """Let jobs run until a gain is claimed by the runs since the study has settled."""
    for run in served.tune(ALICE, app, end):
        if run["phase"] != "settled":
            continue
        gain = served.study(app, ALICE)["assessment"]["gain"]
        if gain["verdict"] == "faster" and not gain["reason"].startswith("Claimed before"):
            return


@pytest.fixture(scope="module")
def served(where: Place) -> Iterator[Service]:
    """Run a service of their own: the mail has the largest gains alone."""
    with service(where, "figures") as running:
        yield running


@pytest.fixture(scope="module")
def night(served: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a nightly report, made once all studies have their runs."""
    until_claimed(served, SURE, seconds(10.0, 20.0))
    for _, run in zip(range(9), served.tune(ALICE, EARLY, seconds(19.0, 20.0)), strict=False):
        assert run["state"] == "counted"
    served.live(served.job(ALICE, MAXIMISED), rate({"run_id": 1, "delivery": {}}))
    why = ("--maximise", "--why", "more is better")
    done = served.tuner(ALICE, "objective", MAXIMISED, "rate", *why)
    assert done.returncode == 0, done.stderr
    until_claimed(served, MAXIMISED, rate)
    directory = tmp_path_factory.mktemp("figures")
    argv = [str(PYTHON), "-m", "io_autotune_report.command", f"--database={served.database_url}"]
    argv += [f"--state={directory / 'state'}", f"--nights={served.nights}"]
    argv += [f"--first={datetime.now().astimezone().date()}", "--processes=1"]
    made = subprocess.run(
        argv, cwd=TREE / "analysis/report", check=True, text=True, stdout=subprocess.PIPE
    )
    return Path(made.stdout.strip()).parent


@pytest.fixture(params=[SURE, EARLY, MAXIMISED])
def screens(served: Service, night: Path, request: pytest.FixtureRequest) -> Screens:
    """Return all that is said of a study."""
    app = request.param
    study = served.study(app, ALICE)
    number = study["study_id"]
    history = served.ask(ALICE, "history", app, "--limit", "10000")
    report = json.loads((night / "report.json").read_bytes())
    (of_night,) = [each for each in report["studies"] if each["study_id"] == number]
    with (night / "studies.csv").open(newline="", encoding="utf-8") as lines:
        (row,) = [each for each in csv.DictReader(lines) if int(each["study_id"]) == number]
    page = served.tuner(ALICE, "report", "--mine").stdout
    begins = page.index(f'id="study-{number}"')
    ends = page.find('id="study-', begins + 1)
    nightly_page = (night / "index.html").read_text(encoding="utf-8")
    return Screens(
        study=study,
        status=served.tuner(ALICE, "status", app).stdout,
        show=served.tuner(ALICE, "show", app).stdout,
        page=text_of(page[begins : None if ends < 0 else ends]),
        history=history,
        explained=served.tuner(ALICE, "explain", str(history[-1]["job_id"])).stdout,
        nightly=of_night,
        row=row,
        nightly_page=text_of(nightly_page),
        mail=next(night.glob("mail*")).read_text(encoding="utf-8"),
    )


def line(text: str, name: str) -> str:
    """Return the line of a screen that begins with a name."""
    (found,) = [each for each in text.splitlines() if each.startswith(f"{name} ")]
    return found.removeprefix(name).strip()


def test_a_gain_is_told_alike(screens: Screens) -> None:
    gain = screens.study["assessment"]["gain"]
    sentence = line(screens.status, "gain")
    runs = "run" if gain["tuned_runs"] == 1 else "runs"
    counts = f"{gain['tuned_runs']} tuned {runs} and {gain['control_runs']} of the default"
    assert (counts in sentence) == (gain["tuned_runs"] > 0), sentence
    assert line(screens.show, "gain") == sentence
    shown = screens.nightly["gain"]
    names = ("verdict", "share", "low", "high", "level", "tuned_runs", "control_runs")
    assert {name: shown[name] for name in names} == {name: gain[name] for name in names}
    assert screens.row["verdict"] == gain["verdict"]
    for column, name in (("gain", "share"), ("gain_low", "low"), ("gain_high", "high")):
        told = screens.row[column]
        assert (float(told) if told else None) == gain[name], column
    assert int(screens.row["tuned_runs"]) == gain["tuned_runs"]
    assert int(screens.row["control_runs"]) == gain["control_runs"]


def figures(text: str) -> list[str]:
    """Return the numbers of a text that have decimals, in their order."""
    return re.findall(r"\d+\.\d+", text)


def test_the_mail_tells_a_gain_as_status_does(screens: Screens) -> None:
    app, gain = screens.study["application"], screens.study["assessment"]["gain"]
    mail = " ".join(screens.mail.split())
    _, _, claimed = mail.partition("Applications with a gain or a loss: ")
    said = re.search(rf"- {app}: (.*?\))", claimed)
    assert (said is not None) == (gain["verdict"] in {"faster", "slower"}), mail
    if said is None:
        return
    sentence = line(screens.status, "gain")
    told, _, _ = sentence.partition(";")
    assert len(figures(told)) == 3, sentence
    assert figures(said[1]) == figures(told)
    what = re.search(r"% (less|more) (.*?) than the default", told)
    assert what is not None, told
    assert f"{figures(told)[0]} % {what[1]} {what[2]} (" in said[1]


def test_the_nightly_page_and_its_mail_have_one_total(night: Path) -> None:
    report = json.loads((night / "report.json").read_bytes())
    mail = " ".join((night / "mail.txt").read_text(encoding="utf-8").split())
    page = " ".join(text_of((night / "index.html").read_text(encoding="utf-8")).split())
    total = report["total"]
    runs = "run" if total["runs"] == 1 else "runs"
    assert f"{total['studies']} studies, {total['settled']} of them with a choice" in mail
    assert f"; {total['runs']} {runs}." in mail
    saved = re.search(r"(?:Saved|Lost) in all: ([\d.,]+ node-\w+)", mail)
    assert saved is not None, mail
    assert saved[1] in page


def test_a_gain_on_the_pages_is_in_the_words_of_status(screens: Screens) -> None:
    if screens.study["assessment"]["gain"]["verdict"] == "faster":
        # What follows the sentence is about elapsed, where that is not the objective.
        sentence, _, _ = line(screens.status, "gain").partition(").")
        for page in (screens.nightly_page, screens.page):
            assert f"{sentence})." in " ".join(page.split())


def test_a_job_is_explained_with_the_figures_of_its_study(screens: Screens) -> None:
    assert line(screens.explained, "in all") == line(screens.status, "gain")
    assert line(screens.explained, "next") == line(screens.status, "next")
    last = screens.history[-1]
    ended = re.search(r"(\w+), elapsed ([\d.]+) s$", line(screens.explained, "ended"))
    assert ended is not None, screens.explained
    assert ended[1] == last["outcome"]
    assert float(ended[2]) == pytest.approx(last["elapsed"], abs=0.51 * unit(ended[2]))


def unit(number: str) -> float:
    """Return what one of the last digit of a number stands for."""
    _, _, decimals = number.partition(".")
    return 10.0 ** -len(decimals)


def test_what_is_compared_is_one_set_of_runs(screens: Screens) -> None:
    gain = screens.study["assessment"]["gain"]
    compared = gain.get("compared")
    assert (compared is not None) == (gain["control_runs"] > 0 and gain["tuned_runs"] > 0)
    if compared is None:
        return
    control, tuned = screens.study["control"], screens.study["tuned"]
    assert (control["n"], tuned["n"]) == (gain["control_runs"], gain["tuned_runs"])
    rows = re.findall(r"^(default|tuned) +(\d+) ", screens.status, flags=re.MULTILINE)
    assert dict(rows) == {"default": str(control["n"]), "tuned": str(tuned["n"])}
    # The runs themselves, of which the history tells: no run of a role counts twice or nowhere.
    of_role = {
        role: [
            run["measures"].get("objective.rate", run["elapsed"])
            for run in screens.history
            if (run["role"], run["phase"], run["state"]) == (role, "settled", "counted")
        ]
        for role in ("control", "settled")
    }
    assert len(of_role["control"]) == control["n"]
    assert len(of_role["settled"]) == tuned["n"]
    if screens.study["objective"] == "elapsed":
        assert control["mean"] == pytest.approx(statistics.fmean(of_role["control"]))
        assert tuned["mean"] == pytest.approx(statistics.fmean(of_role["settled"]))


def test_runs_are_counted_alike(screens: Screens) -> None:
    study = screens.study
    states = [run["state"] for run in screens.history if run["epoch"] == study["epoch"]]
    assert states.count("counted") == study["counted"]
    assert states.count("not_counted") == study["not_counted"]
    said = f"runs: {study['counted']} counted, {study['not_counted']} not counted"
    assert said in screens.status
    # The report tells of a study's whole life.
    in_all = [run["state"] for run in screens.history].count("counted")
    assert screens.nightly["counted"] == in_all == int(screens.row["counted"])
    assert f"of which {in_all} count" in screens.page


def test_what_is_chosen_is_told_alike(screens: Screens) -> None:
    study = screens.study
    chosen = {each["name"]: each["chosen"] for each in screens.nightly["parameters"]}
    if study["recommended"] is None or screens.nightly["chosen_since"] is None:
        return
    assert {name: chosen[name] for name in study["recommended"]} == study["recommended"]
    assert json.loads(screens.row["chosen"]) == study["recommended"]
    said = line(screens.status, "chosen")
    assert said == line(screens.show, "chosen")
    for name, value in study["differs"].items():
        assert f"{name}={value}" in said


def test_no_interval_of_a_time_is_negative(screens: Screens) -> None:
    for name in ("default", "control", "tuned"):
        known = screens.study[name]
        if known and known.get("interval"):
            low, high = known["interval"]
            assert 0.0 < low <= known["mean"] <= high


def test_the_cost_of_exploring_never_falls(served: Service, night: Path) -> None:
    del night
    app = "figures-cost"
    costs = [0.0]
    times = seconds(40.0, 20.0)
    for _, _run in zip(range(24), served.tune(ALICE, app, times), strict=False):
        study = served.study(app, ROOT)
        costs.append(study["regret"]["runs"])
        assert study["regret"]["expected"] <= costs[-1]
    assert costs == sorted(costs), costs
    assert costs[-1] > 0.0
