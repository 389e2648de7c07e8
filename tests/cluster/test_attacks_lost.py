"""A service with very long reports, and with the role that it has in the database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import pytest
from devcluster import render
from devcluster.users import SERVICE_USER
from harness import ROOT, Site, await_true
from services import resident, service_beside
from test_attacks import Sender, finish_of

DATABASE = "lost"
MADE_UP_JOB = 3_999_101


@pytest.fixture
def beside(site: Site) -> Iterator[Sender]:
    """Start a service that has a database of its own; return what sends it anything."""
    text = render.service_toml(site.paths, site.record())
    text = text.replace(f"/{render.DATABASE}?", f"/{DATABASE}?")
    site.sql(f'create database {DATABASE} owner "{SERVICE_USER}"')
    try:
        with service_beside(site, DATABASE, text) as unix:
            yield Sender(site, unix)
    finally:
        site.sql(f"drop database {DATABASE} with (force)")


def taken(sender: Sender, report: bytes) -> bool:
    """Send a report, and return whether it was taken."""
    answer = sender.signed(ROOT, "/v1/runs/finish", report)
    assert answer.status in (200, 503), answer.body[:500]
    return answer.status == 200


def test_many_long_reports_of_a_run_are_never_in_memory_together(
    site: Site, beside: Sender
) -> None:
    """Together they took 466 MiB; now 16 take 100, and 64 take 107.

    Attack (second-round): Sixteen nodes each report 20,000 steps of one run.
    Outcome: The service reads one report at a time, in less than 160 MiB.
    """
    job, nodes = MADE_UP_JOB, 16
    report = finish_of(site, job)
    (step,) = report["steps"]
    report["steps"] = [{**step, "step_id": number, "nodes": nodes} for number in range(20_000)]
    for node in range(nodes):
        report["job"] |= {"node": f"n{node}", "nodes": nodes}
        body = json.dumps(report).encode()
        # "Not now" while the earlier ones are merged, and then a node asks again.
        await_true("it to be taken", partial(taken, beside, body))
    merged = f"select count(*) from runs where job_id = {job} and not dirty and missing is null"
    await_true("all to be read", lambda: site.sql(merged, DATABASE) == [["1"]])
    config = site.paths.etc / f"{DATABASE}.toml"
    most = resident(site, config, "VmHWM")
    assert most < 160 << 20, f"{most >> 20} MiB"


def test_the_service_works_with_the_lesser_role(site: Site) -> None:
    """Every test of this cluster shows that it suffices; this one, that it is the lesser one.

    Attack (units): The service's role makes tables and functions, takes rights, or changes history.
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
