"""What the service's database holds at one moment, as far as the invariants ask."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from harness import Site

_RUNS = """
select jsonb_build_object(
  'job_id', r.job_id, 'restarts', r.restart_count, 'state', r.state, 'outcome', r.outcome,
  'applied', r.applied, 'elapsed', r.elapsed, 'verdict', r.verdict, 'epoch', r.epoch_id,
  'hints', r.delivery #>> '{files,0,content}', 'settings', r.delivery #>> '{settings,0,value}',
  'reports', (select count(*) from reports p where p.run_id = r.id),
  'nodes', (select count(distinct p.node) from reports p where p.run_id = r.id))
from runs r where r.cluster = '%s' order by r.id
"""
_EPOCHS = """
select jsonb_build_object(
  'epoch', e.id, 'study', e.study_id, 'ordinal', e.ordinal, 'judgements', e.judgements,
  'ordinals', (select count(distinct j.ordinal) from judgements j where j.epoch_id = e.id),
  'highest', (select coalesce(max(j.ordinal), 0) from judgements j where j.epoch_id = e.id),
  'in_cache', (select coalesce(sum(t.count), 0) from tested t where t.epoch_id = e.id),
  'counted', (select count(*) from runs r where r.epoch_id = e.id and r.state = 'counted'),
  'tally', e.total,
  'judged', (select count(*) from runs r where r.epoch_id = e.id and r.state <> 'in_flight'))
from epochs e order by e.study_id, e.ordinal
"""
_TWICE = """
select jsonb_build_object('application', a.name, 'studies', count(*))
from studies s join applications a on a.id = s.application_id
group by a.id, a.name, s.accelerator, s.context_key having count(*) > 1
"""


@dataclass(frozen=True)
class Run:
    """A run, as it is stored."""

    job_id: int
    restarts: int
    state: str
    outcome: str | None
    applied: str | None
    """What kind of thing was applied."""
    elapsed: float | None
    verdict: str | None
    hints: str
    """What the job was to read, blanks for line ends."""
    setting: str | None
    reports: int
    nodes: int


@dataclass(frozen=True)
class Epoch:
    """An epoch, with what its caches say and what its runs say."""

    epoch: int
    study: int
    ordinal: int
    judgements: int
    ordinals: int
    highest: int
    in_cache: int
    counted: int
    tally: int
    judged: int


@dataclass(frozen=True)
class Stored:
    """Everything of one moment."""

    runs: list[Run]
    epochs: list[Epoch]
    twice: list[str]
    """Applications that have two studies of the same accelerator and context."""


def stored(site: Site) -> Stored:
    """Read it, all as of one moment."""
    queries = [_RUNS % site.cluster_name, _EPOCHS, _TWICE]
    parts = [f"(select coalesce(jsonb_agg(x), '[]') from ({query}) q(x))" for query in queries]
    ((text,),) = site.sql(f"select jsonb_build_array({', '.join(parts)})".replace("\n", " "))
    runs, epochs, twice = json.loads(text)
    return Stored(
        runs=[_run(item) for item in runs],
        epochs=[Epoch(**{key: int(value) for key, value in item.items()}) for item in epochs],
        twice=[str(item["application"]) for item in twice],
    )


def _run(item: dict[str, Any]) -> Run:
    applied = item["applied"]
    return Run(
        job_id=item["job_id"],
        restarts=item["restarts"],
        state=item["state"],
        outcome=item["outcome"],
        applied=None if applied is None else applied["kind"],
        elapsed=item["elapsed"],
        verdict=item["verdict"],
        hints=" ".join((item["hints"] or "").split()),
        setting=item["settings"],
        reports=item["reports"],
        nodes=item["nodes"],
    )
