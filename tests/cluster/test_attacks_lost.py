"""Attacks on what is remembered: history without a job, text that is not what it looks like."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from devcluster import accounts, command, files, render
from devcluster.users import SERVICE_USER
from harness import ALICE, BOB, ROOT, Site, asked, await_true
from services import resident, service_beside
from test_attacks import Sender, finish_of

DATABASE = "lost"
MADE_UP_JOB = 3_999_100
STAMP = """io-autotune-stamp 1
step 4294967291
start_ns 1000000000
end_ns 3000000000
nodes 1
tasks 1
exited 1
wait_status 0
"""
"""A batch step that ended well after two seconds."""


@dataclass(frozen=True)
class Rogue:
    """Root of a node, which starts and ends runs as it likes, and a Slurm that can forget."""

    site: Site
    config: Path
    directory: Path
    forgets: Path

    def helper(self, action: str, job_id: int, node: str = "n1", user: str = ALICE) -> None:
        """Run the node's helper as slurmd would in the prolog or epilog of a user's job."""
        request = f"app=lost-{job_id},mode=observe"
        environment = self.site.hook_environment(job_id, request, node, user)
        places = [f"--run-dir={self.directory / 'run'}", f"--spool-dir={self.directory / 'spool'}"]
        argv = ["io-autotune-node", action, f"--config={self.config}", *places]
        argv.append("--deadline-ms=20000")
        done = self.site.cluster.run_as(ROOT, argv, env=environment)
        assert "defaults" not in done.stderr, done.stderr

    def start(self, job_id: int, node: str = "n1", user: str = ALICE) -> None:
        """Start a run, and let its batch step have run."""
        self.helper("start", job_id, node, user)
        directory = self.directory / "run" / self.site.cluster_name / node
        files.write(directory / str(job_id) / "step-4294967291.stamp", STAMP, mode=0o400)

    @contextmanager
    def listed(self, *nodes: str) -> Iterator[int]:
        """Start runs of a job of Slurm's on these nodes; yield its id when a source has listed it.

        From then on Slurm has forgotten it, as after an outage of the service beyond MinJobAge.
        """
        job = self.site.sbatch("sleep 600")
        self.site.await_state(job, "RUNNING")
        try:
            for node in nodes:
                self.start(job.job_id, node)
            await_true("it to be seen", lambda: self.column("listed_at", job.job_id) != "")
            self.forgets.touch()
            yield job.job_id
        finally:
            self.forgets.unlink(missing_ok=True)
            self.site.cluster.run_as(ALICE, ["scancel", str(job.job_id)])
            self.site.ended(job)

    def column(self, name: str, job_id: int) -> str:
        """Return what the database has of the job's run."""
        query = f"select coalesce({name}::text, '') from runs where job_id = {job_id}"
        ((value,),) = self.site.sql(query, DATABASE)
        return value

    def verdict(self, job_id: int) -> tuple[str, str]:
        """Wait until the job's run has its verdict, and return it with its reason."""
        await_true("the verdict", lambda: self.column("state", job_id) != "in_flight")
        return self.column("state", job_id), self.column("verdict", job_id)


@pytest.fixture
def rogue(site: Site) -> Iterator[Rogue]:
    """Start a service that waits for nothing, whose Slurm forgets every job on demand."""
    directory = site.paths.root / "lost"
    files.directory(directory, 0o755)
    forgets, squeue = directory / "forgets", directory / "squeue"
    real = command.find("squeue")
    script = f'#!/bin/sh\n[ -e {forgets} ] || exec {real} "$@"\n'
    files.write(squeue, script, mode=0o755)
    text = render.service_toml(site.paths, site.record())
    text = text.replace(f"/{render.DATABASE}?", f"/{DATABASE}?")
    text = re.sub(r"(?m)^squeue = .*\n", "", text)
    text = text.replace("[slurm]\n", f'[slurm]\nsqueue = "{squeue}"\n')
    text = re.sub(r"(?m)^sweep_seconds = .*$", "sweep_seconds = 0.2", text)
    text = text.replace("[reconcile]\n", "[reconcile]\noutcome_patience_seconds = 0\n")
    site.sql(f'create database {DATABASE} owner "{SERVICE_USER}"')
    try:
        with service_beside(site, DATABASE, text) as unix:
            clients = site.paths.client_toml.read_text(encoding="utf-8")
            clients = render.asking(clients, [f"unix:{unix}"])
            config = directory / "client.toml"
            files.write(config, clients, mode=0o644)
            yield Rogue(site, config, directory, forgets)
    finally:
        site.sql(f"drop database {DATABASE} with (force)")


def test_a_made_up_job_that_no_source_ever_listed_does_not_count(rogue: Rogue) -> None:
    """Attack (remembered): Root of a node starts and ends a run of a job that there never was.
    Outcome: The run does not count, because no source ever listed the job.
    """
    rogue.start(MADE_UP_JOB)
    rogue.helper("finish", MADE_UP_JOB)
    state, why = rogue.verdict(MADE_UP_JOB)
    assert (state, "no source ever listed the job" in why) == ("not_counted", True), why


def test_a_job_that_slurm_has_forgotten_counts_if_it_was_listed(rogue: Rogue) -> None:
    """Attack (remembered): Slurm has forgotten a job that it had listed, as after a long outage.
    Outcome: Its run counts all the same.
    """
    with rogue.listed("n1") as job:
        rogue.helper("finish", job)
        state, why = rogue.verdict(job)
        assert (state, "could not be had" in why) == ("counted", True), why


def test_a_report_from_elsewhere_shapes_no_study(rogue: Rogue) -> None:
    """Root of n2 reports a run of a job on n1 before n1 does.

    Attack (service): Root of a node reports a run of a job that is on another node, before that
    node does, and Slurm has forgotten the job.
    Outcome: As more nodes have reported than the job had, the run does not count.
    """
    with rogue.listed("n1", "n2") as job:
        rogue.helper("finish", job, "n2")
        rogue.verdict(job)
        rogue.helper("finish", job, "n1")
        why = "n1, n2 reported a job of 1 nodes"
        await_true("all to count", lambda: why in rogue.column("verdict", job))
        assert rogue.column("state", job) == "not_counted"


def test_slurm_says_where_a_job_was_and_whose_it_is(rogue: Rogue) -> None:
    """Attack (service): Root of a node starts and reports a run of a job that ran on another node,
    or of another user's job.
    Outcome: Slurm says where the job ran and whose it was, and the run does not count.
    """
    site = rogue.site
    alice, bob = accounts.find(ALICE).uid, accounts.find(BOB).uid
    for node, user, why in (
        ("n2", ALICE, "n2 started it, and Slurm says that it ran on n1"),
        ("n1", BOB, f"a job of uid {alice}, and n1 started it for uid {bob}"),
    ):
        job = site.sbatch("true", "--nodelist=n1")
        site.ended(job)
        rogue.start(job.job_id, node, user)
        rogue.helper("finish", job.job_id, node, user)
        state, verdict = rogue.verdict(job.job_id)
        assert (state, why in verdict) == ("not_counted", True), verdict


def test_a_node_that_the_job_had_not_is_not_heard(rogue: Rogue) -> None:
    """Attack (service): Root of a node that a job did not have reports it before the job's own node
    does.
    Outcome: That report is left out, and the run counts by the job's own node.
    """
    site = rogue.site
    job = site.sbatch("true", "--nodelist=n1")
    site.ended(job)
    for node in ("n1", "n2"):
        rogue.start(job.job_id, node)
    rogue.helper("finish", job.job_id, "n2")
    rogue.helper("finish", job.job_id, "n1")
    state, why = rogue.verdict(job.job_id)
    assert state == "counted", why


def taken(sender: Sender, report: bytes) -> bool:
    """Send a report, and return whether it was taken."""
    answer = sender.signed(ROOT, "/v1/runs/finish", report)
    assert answer.status in (200, 503), answer.body[:500]
    return answer.status == 200


def test_many_long_reports_of_a_run_are_never_in_memory_together(rogue: Rogue) -> None:
    """Together they took 466 MiB; now 16 take 100, and 64 take 107.

    Attack (second-round): Sixteen nodes each report 20,000 steps of one run.
    Outcome: The service takes less than 160 MiB for all of them: it reads one report at a time.
    """
    site = rogue.site
    sender = Sender(site, site.paths.run / f"{DATABASE}.sock")
    job, nodes = MADE_UP_JOB + 1, 16
    report = finish_of(site, job)
    (step,) = report["steps"]
    report["steps"] = [{**step, "step_id": number, "nodes": nodes} for number in range(20_000)]
    for node in range(nodes):
        report["job"] |= {"node": f"n{node}", "nodes": nodes}
        body = json.dumps(report).encode()
        # "Not now" while the earlier ones are merged, and then a node asks again.
        await_true("it to be taken", partial(taken, sender, body))
    merged = f"select count(*) from runs where job_id = {job} and not dirty and missing is null"
    await_true("all to be read", lambda: site.sql(merged, DATABASE) == [["1"]])
    config = site.paths.etc / f"{DATABASE}.toml"
    most = resident(site, config, "VmHWM")
    assert most < 160 << 20, f"{most >> 20} MiB"


def test_a_reason_that_is_not_what_it_looks_like_is_refused(site: Site) -> None:
    """Attack (units): A user gives a reason with `--why` that has characters which are invisible or
    reorder text.
    Outcome: It is refused, the refusal does not repeat the character, and the audit has nothing of
    it.
    """
    app = "lost-reasons"
    site.run("true", asked(app))
    for character in ("\u202e", "\u2066", "\u200b", "\ufeff", "\u061c"):
        argv = ["io-autotune", "reset", app, "--why", f"fine {character}gnp.exe"]
        done = site.cluster.run_as(ALICE, argv, check=False)
        assert done.returncode != 0, ascii(character)
        assert "invisible" in done.stderr
        assert character not in done.stderr + done.stdout
    assert site.sql("select count(*) from audit where why like '%gnp.exe%'") == [["0"]]


def test_a_reason_of_an_earlier_release_is_shown_as_questions(site: Site) -> None:
    """Attack (units): The database has a reason with such characters from an earlier release.
    Outcome: The CLI shows question marks instead, and escapes in JSON, to users and admins.
    """
    app = "lost-stored"
    site.run("true", asked(app))
    study = site.pin(app, {"cb_nodes": "4"})["study_id"]
    why = "U&'fine \\202Egnp.exe\\200B \\2066x'"
    site.sql(f"update pins set why = {why} where study_id = {study}")
    for user in (ALICE, ROOT):
        shown = site.cluster.run_as(user, ["io-autotune", "status", "--study", str(study)]).stdout
        assert "fine ?gnp.exe? ?x" in shown
        argv = ["io-autotune", "status", "--study", str(study), "--json"]
        json_text = site.cluster.run_as(user, argv).stdout
        assert "fine \\u202egnp.exe\\u200b" in json_text
        assert "\u202e" not in json_text


def test_the_service_works_with_the_lesser_role(site: Site) -> None:
    """Every test of this cluster shows that it suffices; this one, that it is the lesser one.

    Attack (units): A service that is taken over makes tables, temporary tables, or changes the
    audit.
    Outcome: The role that it has in the database, with which all other tests run, has no right to
    do so.
    """
    roles = site.sql(
        "select distinct usename, usesuper from pg_stat_activity join pg_user using (usename)"
        " where application_name like 'io-autotuned%'"
    )
    assert roles == [["io-autotune", "f"]]
    assert site.sql(
        "select has_schema_privilege('io-autotune', 'public', 'create'),"
        " has_database_privilege('io-autotune', current_database(), 'temporary'),"
        " has_table_privilege('io-autotune', 'audit', 'update'),"
        " has_table_privilege('io-autotune', 'audit', 'insert')"
    ) == [["f", "f", "f", "t"]]
