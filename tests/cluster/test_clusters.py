"""Two clusters, each with its own slurmctld, munge key's owner and nodes, on one service.

The second one's Slurm is out of the service's network: its collector tells how its jobs ended, and
its hosts sign with the first one's munged, as hosts of one key do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from clusters import VARIANT, cluster_of_its_own
from devcluster import Variant, accounts, files, render
from devcluster.settings import quote, to_toml
from devcluster.users import COLLECTOR_USER, SERVICE_USER
from harness import ALICE, ROOT, Job, Json, Site, asked, await_value


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
    if VARIANT.get("auth") == "slurm":
        pytest.skip(
            "auth/slurm has one place for its sockets on a host, and these are two clusters"
        )
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
