-- What the nightly report reads: node-hours need a run's nodes, sums by account need its account. The report's
-- own role sees the views of schema `report` and no table; deploy/sql/report-role.sql makes it.

-- A large history takes longer than one of the service's statements may.
set local statement_timeout = 0;

alter table runs
    -- How many nodes the job had; null where nobody said.
    add column nodes integer check (nodes > 0);

update runs r set nodes = said.nodes
from (select distinct on (run_id) run_id, (body -> 'job' ->> 'nodes')::integer as nodes
      from reports order by run_id, id) said
where said.run_id = r.id and said.nodes > 0;

alter table outcomes
    -- The account that Slurm charged, where the source tells it. It says nothing of how the job ended.
    add column account text check (account <> '');

create schema report;

create view report.studies as
select s.id as study_id, a.name as application, a.owner_uid,
       coalesce(a.owner_name, a.owner_uid::text) as "user", s.accelerator, s.context,
       p.study_id is not null as pinned, p.parametrization as pin, p.pinned_at, s.created_at
from studies s
join applications a on a.id = s.application_id
left join pins p on p.study_id = s.id;

-- `judgements` is how many verdicts the epoch has seen: what is new since a night is beyond what it was then.
create view report.epochs as
select id as epoch_id, study_id, ordinal as epoch, takes, space, objective, opened_at, opened_why, total,
       judgements
from epochs;

-- Each judgement of each run, numbered in its epoch; the one that `latest` marks holds. Append-only but for
-- `latest` and `account`.
create view report.judgements as
select j.epoch_id, j.ordinal, j.run_id, j.effect, j.parametrization, j.elapsed, j.judged_at, j.verdict,
       r.judged_ordinal = j.ordinal as latest,
       e.study_id, e.ordinal as epoch, r.started_at, r.nodes, r.role, r.phase,
       (select o.account from outcomes o where o.run_id = r.id and o.account is not null
        order by o.id desc limit 1) as account
from judgements j
join runs r on r.id = j.run_id
join epochs e on e.id = j.epoch_id;
