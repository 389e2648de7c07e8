"""A study's runs, as the nightly report reads them, from a private cluster's database."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pandas as pd
from devcluster import Cluster, accounts
from devcluster.render import DATABASE
from devcluster.users import SERVICE_USER
from io_autotune_report.load import read_runs


def runs(cluster: Cluster, study_id: int) -> pd.DataFrame:
    """Return the study's runs that have a verdict: the columns of ``frames.RUNS``."""
    sockets = quote(str(cluster.paths.pg_sockets), safe="")
    url = f"postgresql://{SERVICE_USER}@/{DATABASE}?host={sockets}&port={cluster.database_port()}"
    with _as_the_service():
        return read_runs(url, [study_id])


@contextmanager
def _as_the_service() -> Iterator[None]:
    """Be the service's account, which PostgreSQL knows by its socket's peer."""
    account = accounts.find(SERVICE_USER)
    os.setegid(account.gid)
    os.seteuid(account.uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)
