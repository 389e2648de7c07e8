"""Two clusters, each with its own slurmctld, munge key's owner and nodes, on one service.

The second one's Slurm is out of the service's network: its collector tells how its jobs ended, and
its hosts sign with the first one's munged, as hosts of one key do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from clusters import cluster_of_its_own
from devcluster import Variant, accounts, files, render
from devcluster.settings import quote, to_toml
from devcluster.users import COLLECTOR_USER, SERVICE_USER
from harness import ALICE, BOB, ROOT, Job, Json, Site, asked, await_value


@dataclass(frozen=True)
class Pair:
    """Two clusters; ``alpha`` has the service."""

    alpha: Site
    beta: Site

    def run(self, site: Site, job: Job) -> Json:
        """Wait for the verdict on a cluster's job, and return its run."""

        def look() -> Json | None:
            argv = ("explain", str(job.job_id), "-M", site.cluster_name, "--json")
            done = self.alpha.tuner(ROOT, *argv)
            if done.returncode != 0:
                return None
            (detail,) = self.alpha.ask(ROOT, *argv[:-1])
            run: Json = detail["run"]
            return None if run["state"] == "in_flight" else run

        return await_value(f"the verdict on job {job.job_id} of {site.cluster_name}", look)

    def jobs_of_one_id(self, application: str) -> tuple[Job, Job]:
        """Submit a job to each cluster until both have one of the same id."""
        alpha, beta = (site.sbatch("true", asked(application)) for site in (self.alpha, self.beta))
        while alpha.job_id != beta.job_id:
            if alpha.job_id < beta.job_id:
                alpha = self.alpha.sbatch("true", asked(application))
            else:
                beta = self.beta.sbatch("true", asked(application))
        return alpha, beta


@pytest.fixture(scope="module")
def strangers(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Bring up two clusters; both ask the first one's service, which knows its own alone."""
    pushed = Variant(jobcomp=True, sources=("jobcomp",))
    with (
        cluster_of_its_own(request, "one of two clusters") as alpha,
        cluster_of_its_own(request, "two of two clusters", variant=pushed) as beta,
    ):
        alpha.introduce_nodes()
        users, nodes = (
            f"unix:{path}" for path in (alpha.paths.service_socket, alpha.paths.nodes_socket)
        )
        text = beta.paths.client_toml.read_text(encoding="utf-8")
        text = render.asking(text, [users], [nodes])
        text = text.replace(str(beta.paths.munge_socket), str(alpha.paths.munge_socket))
        files.write(beta.paths.client_toml, text, mode=0o644)
        for part in ("collector", "flusher"):
            beta.restart(part)
        yield Pair(alpha, beta)


@pytest.fixture(scope="module")
def pair(strangers: Pair) -> Pair:
    """Let the service serve both, and have each node of the second one answered once."""
    pair = strangers
    serve_both(pair.alpha, pair.beta)
    for node in pair.beta.cluster.node_states():
        job = pair.beta.sbatch("true", asked("introduced"), f"--nodelist={node}")
        pair.run(pair.beta, job)
    return pair


def serve_both(alpha: Site, beta: Site) -> None:
    """Write a [[slurm]] for each cluster, and restart the first one's service."""
    path = alpha.paths.service_toml
    text = path.read_text(encoding="utf-8")
    assert text.count("[slurm]\n") == 1
    assert "collectors" not in text
    both = (
        f"[[slurm]]\ncluster = {quote(beta.cluster_name)}\n"
        f'conf = {quote(str(beta.paths.slurm_conf))}\nsources = ["jobcomp"]\n\n[[slurm]]\n'
    )
    text = text.replace("[slurm]\n", both)
    roles = f"[access]\ncollectors = {to_toml([COLLECTOR_USER])}\n"
    text = text.replace("[access]\n", roles)
    files.write(path, text, mode=0o640, gid=accounts.find(SERVICE_USER).gid)
    alpha.restart("io-autotuned")


def test_a_job_of_a_cluster_that_the_service_does_not_have_runs_and_is_not_recorded(
    strangers: Pair,
) -> None:
    beta, service = strangers.beta, strangers.alpha
    before = service.sql("select max(id) from runs")
    job = beta.sbatch("echo done", asked("stranger"))
    assert beta.ended(job)["JobState"] == "COMPLETED"
    assert beta.output(job) == "done\n"
    (refused,) = await_value("the report to be refused", lambda: refused_reports(beta))
    log = beta.paths.log.joinpath("slurmd-n1.log").read_text(encoding="utf-8", errors="replace")
    log += beta.paths.log.joinpath("slurmd-n2.log").read_text(encoding="utf-8", errors="replace")
    assert f'the service has no cluster "{beta.cluster_name}": it has' in log
    assert service.sql("select max(id) from runs") == before
    assert service.sql("select distinct cluster from studies") == [[service.cluster_name]]
    refused.unlink()


def refused_reports(site: Site) -> list[Path] | None:
    """Return the reports that the service has refused, if there are any."""
    return [path for path in site.spooled() if path.suffix == ".refused"] or None


def test_jobs_of_one_id_and_one_application_are_two_runs_of_two_studies(pair: Pair) -> None:
    alpha, beta = pair.jobs_of_one_id("twin")
    runs = pair.run(pair.alpha, alpha), pair.run(pair.beta, beta)
    assert [run["cluster"] for run in runs] == [pair.alpha.cluster_name, pair.beta.cluster_name]
    assert [run["outcome"] for run in runs] == ["COMPLETED", "COMPLETED"], runs
    assert [run["state"] for run in runs] == ["counted", "counted"], runs
    assert runs[0]["study_id"] != runs[1]["study_id"]

    # Asked by the id alone the service asks which; a cluster's own command need not know either.
    for site in (pair.alpha, pair.beta):
        done = site.tuner(ALICE, "explain", str(alpha.job_id))
        assert done.returncode == 4, done
        assert f"job {alpha.job_id} is one of each of the clusters" in done.stderr
        assert "--cluster NAME" in done.stderr


def test_lists_have_a_column_of_clusters_and_can_be_of_one(pair: Pair) -> None:
    for site, job in zip((pair.alpha, pair.beta), pair.jobs_of_one_id("listed"), strict=True):
        pair.run(site, job)
    names = [pair.alpha.cluster_name, pair.beta.cluster_name]
    studies = pair.alpha.ask(ALICE, "status", "listed")
    assert sorted(study["cluster"] for study in studies) == names
    table = pair.alpha.tuner(ALICE, "status", "listed").stdout
    assert table.split()[:2] == ["Study", "Cluster"], table
    runs = pair.alpha.tuner(ALICE, "history", "listed").stdout
    assert "Cluster" in runs.splitlines()[0].split(), runs
    for name in names:
        (study,) = pair.alpha.ask(ALICE, "status", "listed", "--cluster", name)
        assert study["cluster"] == name
        full = pair.beta.tuner(ALICE, "status", "listed", "-M", name).stdout
        assert f"cluster={name} " in full, full
        history = pair.beta.ask(ALICE, "history", "listed", "-M", name)
        assert {run["cluster"] for run in history} == {name}
    wrong = pair.alpha.tuner(ALICE, "status", "-M", "gamma")
    assert wrong.returncode == 4
    assert 'no cluster "gamma"' in wrong.stderr


def test_what_is_ordered_for_one_cluster_holds_there_alone(pair: Pair) -> None:
    app, (alpha, beta) = "ordered", (pair.alpha.cluster_name, pair.beta.cluster_name)
    for site, job in zip((pair.alpha, pair.beta), pair.jobs_of_one_id(app), strict=True):
        pair.run(site, job)
    argv = ("off", app, "-M", beta, "--why", "its file system", "--yes")
    assert pair.alpha.tuner(ALICE, *argv).returncode == 0
    ordered = {one["cluster"]: one["ordered"] for one in pair.alpha.ask(ALICE, "status", app)}
    assert ordered == {alpha: None, beta: "off"}
    assert pair.beta.tuner(ALICE, "on", app, "-M", beta, "--yes").returncode == 0


def test_an_import_says_which_cluster_its_studies_become(pair: Pair) -> None:
    alpha, beta = pair.alpha, pair.beta
    for site, job in zip((alpha, beta), pair.jobs_of_one_id("exported"), strict=True):
        pair.run(site, job)
    done = alpha.tuner(ALICE, "export", "exported")
    assert (done.returncode, "the studies of one cluster" in done.stderr) == (2, True), done
    text = alpha.tuner(ROOT, "export", "exported", "-M", beta.cluster_name).stdout
    # Jobs and a study that are not known here.
    text = re.sub(r'"job_id":(\d+)', r'"job_id":9\1', text.replace('"exported"', '"imported"'))
    path = alpha.paths.run / "imported.jsonl"
    files.write(path, text, mode=0o644)
    argv = ("import", str(path), "--why", "a merger")
    for named, said in (((), "`--cluster NAME`"), (("-M", "gamma"), 'no cluster "gamma"')):
        done = alpha.tuner(ROOT, *argv, *named)
        assert (done.returncode, said in done.stderr) == (4, True), done
    assert alpha.ask(ROOT, "status", "imported") == []
    alpha.ask(ROOT, *argv, "--cluster", beta.cluster_name)
    (study,) = alpha.ask(ALICE, "status", "imported")
    assert (study["cluster"], study["counted"]) == (beta.cluster_name, 1), study
    path.unlink()


def test_a_service_does_not_start_without_a_cluster_that_has_studies(pair: Pair) -> None:
    alpha, beta = pair.alpha, pair.beta
    text = alpha.paths.service_toml.read_text(encoding="utf-8")
    without = alpha.paths.etc / "without.toml"
    text = text.replace(quote(beta.cluster_name), quote("gamma"))
    files.write(without, text, mode=0o640, gid=accounts.find(SERVICE_USER).gid)
    argv = [str(alpha.paths.bin / "io-autotuned"), "--config", str(without)]
    done = alpha.cluster.run_as(SERVICE_USER, argv, cwd=Path("/"), check=False)
    assert done.returncode == 1
    assert f"io-autotuned --map-cluster {beta.cluster_name}=NAME" in done.stderr, done.stderr
    # Where it is told to by mistake, the other cluster has the same studies.
    mapping = f"--map-cluster={beta.cluster_name}={alpha.cluster_name}"
    done = alpha.cluster.run_as(SERVICE_USER, [*argv, mapping], cwd=Path("/"), check=False)
    assert done.returncode == 1
    assert "nothing was changed" in done.stderr, done.stderr


def test_a_user_of_one_cluster_sees_nothing_of_anothers_on_the_other(pair: Pair) -> None:
    job = pair.beta.sbatch("true", asked("private"))
    pair.run(pair.beta, job)
    done = pair.alpha.tuner(BOB, "explain", str(job.job_id), "-M", pair.beta.cluster_name)
    assert done.returncode == 4
    assert "there is no run of a job" in done.stderr
