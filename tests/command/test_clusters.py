"""A service of several clusters, as the command shows it and asks about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from command.jobs import Json
from command.place import Place
from command.service import ALICE, BOB, ROOT, Service, service

CLUSTERS = ("alpha", "beta")
JOB = 77


@pytest.fixture(scope="module")
def pair(where: Place) -> Iterator[Service]:
    """Run a service of two clusters."""
    with service(where, "pair", clusters=CLUSTERS) as running:
        yield running


@pytest.fixture(scope="module")
def runs(pair: Service) -> list[Json]:
    """Return the runs of a job of one id on each cluster, of one application."""
    return [pair.live(pair.job(ALICE, "twin", cluster=cluster, job_id=JOB)) for cluster in CLUSTERS]


def test_lists_have_a_column_of_clusters_and_can_be_of_one(pair: Service, runs: list[Json]) -> None:
    assert [run["cluster"] for run in runs] == list(CLUSTERS)
    studies = pair.ask(ALICE, "status", "twin")
    assert sorted(study["cluster"] for study in studies) == list(CLUSTERS)
    table = pair.tuner(ALICE, "status", "twin").stdout
    assert table.split()[:2] == ["Study", "Cluster"], table
    history = pair.tuner(ALICE, "history", "twin").stdout
    assert "Cluster" in history.splitlines()[0].split(), history
    for name in CLUSTERS:
        (study,) = pair.ask(ALICE, "status", "twin", "--cluster", name)
        assert study["cluster"] == name
        full = pair.tuner(ALICE, "status", "twin", "-M", name).stdout
        assert f"cluster={name} " in full, full
        of_one = pair.ask(ALICE, "history", "twin", "-M", name)
        assert {run["cluster"] for run in of_one} == {name}
    done = pair.tuner(ALICE, "status", "-M", "gamma")
    assert (done.returncode, 'no cluster "gamma"' in done.stderr) == (4, True), done


def test_a_job_s_id_alone_is_asked_about(pair: Service, runs: list[Json]) -> None:
    for command in (("explain", str(JOB)), ("explain", str(JOB), "--replay")):
        done = pair.tuner(ALICE, *command)
        assert (done.returncode, done.stdout) == (4, "")
        assert f"job {JOB} is one of each of the clusters" in done.stderr
        assert "--cluster NAME" in done.stderr
        for name, run in zip(CLUSTERS, runs, strict=True):
            done = pair.tuner(ALICE, *command, "-M", name)
            assert (done.returncode, done.stderr) == (0, "")
            (detail,) = pair.ask(ALICE, "explain", str(JOB), "-M", name)
            assert detail["run"]["run_id"] == run["run_id"]
    done = pair.tuner(BOB, "explain", str(JOB), "-M", "beta")
    assert (done.returncode, "there is no run of a job" in done.stderr) == (4, True), done


def test_what_is_ordered_for_one_cluster_holds_there_and_is_ended_there(
    pair: Service, runs: list[Json]
) -> None:
    number = str(runs[1]["study_id"])
    done = pair.tuner(ALICE, "off", "twin", "-M", "beta", "--why", "its file system", "--yes")
    assert done.returncode == 0, done.stderr
    ordered = {one["cluster"]: one["ordered"] for one in pair.ask(ALICE, "status", "twin")}
    assert ordered == {"alpha": None, "beta": "off"}
    said = pair.tuner(ALICE, "status", "--study", number).stdout
    _, _, rest = said.partition("to end it: ")
    command = rest.splitlines()[0]
    assert "--cluster beta" in command
    done = pair.paste(ALICE, command)
    assert (done.returncode, done.stderr) == (0, ""), command
    assert {one["ordered"] for one in pair.ask(ALICE, "status", "twin")} == {None}


def test_a_file_has_the_studies_of_one_cluster(
    pair: Service, runs: list[Json], shared: Path
) -> None:
    done = pair.tuner(ALICE, "transfer", "export", "twin")
    assert (done.returncode, done.stdout) == (2, ""), done
    assert "a file has the studies of one cluster: name it, of alpha, beta" in done.stderr
    text = pair.tuner(ROOT, "transfer", "export", "twin", "-M", "beta").stdout
    text = text.replace(f'"job_id":{JOB}', f'"job_id":9{JOB}').replace('"twin"', '"imported"')
    file = shared / "imported.jsonl"
    file.write_text(text, encoding="utf-8")
    argv = ("transfer", "import", str(file), "--why", "a merger")
    for named, said in (((), "`--cluster NAME`"), (("-M", "gamma"), 'no cluster "gamma"')):
        done = pair.tuner(ROOT, *argv, *named)
        assert (done.returncode, said in done.stderr) == (4, True), done
    assert pair.ask(ROOT, "status", "imported") == []
    pair.ask(ROOT, *argv, "--cluster", "beta")
    (study,) = pair.ask(ALICE, "status", "imported")
    assert (study["cluster"], study["counted"]) == ("beta", 1), study
    assert len(runs) == 2
