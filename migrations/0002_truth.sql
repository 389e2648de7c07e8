-- The truth about each end: what Slurm says of it, kept as it was said; reports of several nodes;
-- and judgements that are revised when the truth arrives late.

-- A large history takes longer than one of the service's statements may.
set local statement_timeout = 0;

-- What Slurm said of how jobs ended, whatever the source. A word is never changed, only joined to the
-- run it speaks of; one that meets no run is kept for some days, because its run may still be reported.
create table outcomes (
    id                 bigint generated always as identity primary key,
    source             text        not null check (source in ('jobcomp', 'sacct', 'squeue')),
    cluster            text        not null,
    job_id             bigint      not null check (job_id between 1 and 4294967295),
    state              text        not null check (state <> ''),
    exit_code          text,
    restart_count      integer     check (restart_count >= 0),
    started_at         timestamptz,
    ended_at           timestamptz,
    suspended_seconds  bigint      check (suspended_seconds >= 0),
    limit_seconds      bigint      check (limit_seconds >= 0),
    received_at        timestamptz not null default now(),
    run_id             bigint      references runs
);
-- The same word again is no new word; null is a value here.
create unique index outcomes_once on outcomes (
    cluster, job_id, source, state, coalesce(exit_code, ''), coalesce(restart_count, -1),
    coalesce(started_at, '-infinity'), coalesce(ended_at, '-infinity'), coalesce(suspended_seconds, -1),
    coalesce(limit_seconds, -1));
create index outcomes_run on outcomes (run_id) where run_id is not null;
create index outcomes_unclaimed on outcomes (received_at) where run_id is null;

-- What was made of each run. A run's latest judgement holds; the earlier ones stay, so that what a
-- suggestion was made from can be had again. Kept under the study's lock.
create table judgements (
    id               bigint generated always as identity primary key,
    epoch_id         bigint      not null references epochs,
    -- The judgement's place in its epoch, from 1.
    ordinal          bigint      not null check (ordinal >= 1),
    run_id           bigint      not null references runs,
    -- A sample counts; a censored run is a lower bound; a failure speaks against a parametrization.
    effect           text        not null check (effect in ('sample', 'censored', 'failure', 'nothing')),
    -- What it speaks of; nothing speaks of none.
    parametrization  jsonb,
    elapsed          double precision check (elapsed > 0 and elapsed < 'infinity'),
    verdict          text        not null,
    judged_at        timestamptz not null default now(),
    unique (epoch_id, ordinal),
    check ((effect = 'nothing') = (parametrization is null)),
    check ((effect in ('sample', 'censored')) = (elapsed is not null))
);
create index judgements_run on judgements (run_id, ordinal);

alter table epochs
    -- How many judgements there are: `tested` is what the latest one of each run adds up to.
    add column judgements bigint not null default 0;

alter table tested
    add column censored jsonb not null default '[]';

alter table studies
    -- Its runs are told to be one application's, however much they differ.
    add column mixed_accepted_at timestamptz,
    add column mixed_accepted_by bigint,
    add column mixed_accepted_why text;

alter table runs
    -- Where the outcome is from.
    add column outcome_source text check (outcome_source in ('jobcomp', 'sacct', 'squeue')),
    add column suspended boolean not null default false,
    -- The job's time limit, as Slurm has told it.
    add column limit_seconds bigint check (limit_seconds >= 0),
    -- What the reports still lack, in one sentence; null if they are complete.
    add column missing text,
    -- What slurmd told the epilog.
    add column epilog jsonb,
    -- Its start never arrived: started_at is when it was first heard of.
    add column unstarted boolean not null default false,
    -- In flight without holding a place among the exploring runs.
    add column released boolean not null default false,
    -- How often something new was heard of it (a report, another word of Slurm's), and how much of that its
    -- latest judgement knew.
    add column news bigint not null default 0,
    add column judged_news bigint not null default 0;

comment on column runs.judged_ordinal is 'the ordinal of its latest judgement';

update runs set
    outcome_source = case when outcome is not null then 'squeue' end,
    unstarted = suggestion ? 'no_start',
    news = (finished_at is not null)::int + (outcome is not null)::int,
    judged_news = case when state = 'in_flight' then 0
                       else (finished_at is not null)::int + (outcome is not null)::int end;

alter table runs
    drop constraint runs_state_check,
    add constraint runs_state_check check (state in ('in_flight', 'counted', 'censored', 'not_counted')),
    drop constraint runs_check2,
    -- What was heard since its judgement may contradict it, until it is judged again. A run counts without an
    -- outcome only where Slurm's word cannot be had.
    add constraint runs_judged_on_truth check (
        news > judged_news or case state
            when 'counted' then elapsed is not null and applied is not null and coalesce(outcome, 'COMPLETED') = 'COMPLETED'
            when 'censored' then elapsed is not null and applied is not null and outcome is not distinct from 'TIMEOUT'
            else true end),
    add constraint runs_judged_news check (judged_news between 0 and news);

create index runs_awaited on runs (cluster, id) where state = 'in_flight' or news > judged_news;

alter table audit
    drop constraint audit_action_check,
    add constraint audit_action_check check (action in ('pin', 'unpin', 'reset', 'accept'));

-- Every run that has a verdict has one judgement, in the order in which they entered the caches. Until now a
-- failure spoke against what the run was launched with.
insert into judgements (epoch_id, ordinal, run_id, effect, parametrization, elapsed, verdict, judged_at)
select r.epoch_id, r.judged_ordinal, r.id, j.effect,
       case j.effect
           when 'sample' then
               case r.applied ->> 'kind'
                   when 'default' then (select coalesce(jsonb_object_agg(p ->> 'name', p -> 'default'), '{}')
                                        from jsonb_array_elements(e.space) p)
                   else coalesce(r.applied -> 'parametrization', r.parametrization) end
           when 'failure' then r.parametrization end,
       case j.effect when 'sample' then r.elapsed end,
       coalesce(r.verdict, ''), r.judged_at
from runs r
join epochs e on e.id = r.epoch_id
cross join lateral (
    select case
        when r.state = 'counted' then 'sample'
        -- A run that nobody had reported was never taken for a failure.
        when r.outcome in ('FAILED', 'OUT_OF_MEMORY', 'TIMEOUT') and r.verdict not like '%no node reported%'
            then 'failure'
        when r.outcome = 'COMPLETED' and r.wait_status <> 0 and r.verdict like '%wait status%' then 'failure'
        else 'nothing' end as effect) j
where r.state <> 'in_flight'
order by r.epoch_id, r.judged_ordinal;

update epochs set judgements = total;
