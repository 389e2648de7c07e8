-- The truth about every run. History is append-only: a reset opens an epoch and deletes nothing.
-- This file is never edited once shipped; changes are new files (expand first, contract later).

-- The identity under which history is gathered: one user's, by the job's name or app=.
create table applications (
    id          bigint generated always as identity primary key,
    owner_uid   bigint      not null check (owner_uid between 0 and 4294967295),
    owner_name  text,
    name        text        not null check (name <> ''),
    created_at  timestamptz not null default now(),
    unique (owner_uid, name)
);

-- Application x context x accelerator: one optimisation. Its row lock serialises suggestions.
create table studies (
    id              bigint generated always as identity primary key,
    application_id  bigint      not null references applications,
    accelerator     text        not null check (accelerator <> ''),
    context         jsonb       not null check (jsonb_typeof(context) = 'object'),
    context_key     text        not null,
    created_at      timestamptz not null default now(),
    unique (application_id, accelerator, context_key)
);

-- A span of a study whose runs are exchangeable: one version of the space, one objective.
create table epochs (
    id                bigint generated always as identity primary key,
    study_id          bigint      not null references studies,
    ordinal           integer     not null check (ordinal >= 1),
    parent_id         bigint      references epochs,
    takes             text        not null check (takes in ('nothing', 'ranks', 'runs')),
    space             jsonb       not null,
    objective         text        not null default 'elapsed',
    seed              bigint      not null,
    opened_at         timestamptz not null default now(),
    opened_why        text        not null,
    -- The tally of runs that ended, counted or not: a cache over runs, kept under the study's lock.
    baseline          bigint      not null default 0,
    explored          bigint      not null default 0,
    controls          bigint      not null default 0,
    settled           bigint      not null default 0,
    settled_controls  bigint      not null default 0,
    total             bigint      not null default 0,
    unique (study_id, ordinal)
);

-- A parametrization that every run of a study gets, for as long as the row stands.
create table pins (
    study_id         bigint      primary key references studies,
    parametrization  jsonb       not null,
    uid              bigint      not null,
    pinned_at        timestamptz not null default now(),
    why              text        not null
);

-- One launch of an application under one parametrization.
create table runs (
    id               bigint generated always as identity primary key,
    epoch_id         bigint      not null references epochs,
    cluster          text        not null,
    job_id           bigint      not null check (job_id between 1 and 4294967295),
    restart_count    integer     not null check (restart_count >= 0),
    uid              bigint      not null,
    node             text        not null,
    request          jsonb       not null,
    phase            text        not null check (phase in ('baseline', 'design', 'search', 'settled')),
    role             text        not null check (role in ('baseline', 'design', 'search', 'control', 'settled',
                                                          'best_known', 'pinned', 'observe')),
    parametrization  jsonb       not null,
    reason           text        not null,
    suggestion       jsonb       not null,
    delivery         jsonb       not null,
    started_at       timestamptz not null default now(),
    finished_at      timestamptz,
    elapsed          double precision check (elapsed > 0 and elapsed < 'infinity'),
    wait_status      integer,
    applied          jsonb,
    measures         jsonb       not null default '{}',
    outcome          text,
    outcome_at       timestamptz,
    state            text        not null default 'in_flight' check (state in ('in_flight', 'counted', 'not_counted')),
    verdict          text,
    judged_at        timestamptz,
    -- The run's place among the judged runs of its epoch, from 1: a replay takes those up to it.
    judged_ordinal   bigint,
    unique (cluster, job_id, restart_count),
    check ((state = 'in_flight') = (judged_at is null)),
    check ((state = 'in_flight') = (judged_ordinal is null)),
    unique (epoch_id, judged_ordinal),
    check (state <> 'counted' or (elapsed is not null and applied is not null
                                   and outcome is not distinct from 'COMPLETED'))
);
create index runs_epoch on runs (epoch_id, id);
create index runs_in_flight on runs (epoch_id, id) where state = 'in_flight';
create index runs_compared on runs (epoch_id, role, id desc) where phase = 'settled' and state = 'counted';

-- What the nodes said, as they said it. A report applies once however often it arrives.
create table reports (
    id             bigint generated always as identity primary key,
    run_id         bigint      not null references runs,
    node           text        not null,
    body           jsonb       not null,
    received_at    timestamptz not null default now(),
    unique (run_id, node)
);

-- Per parametrization of an epoch: count and moments. A cache over counted runs, kept under the
-- study's lock, so that a suggestion costs by the number of parametrizations and not of runs.
create table tested (
    epoch_id         bigint           not null references epochs,
    key              text             not null,
    parametrization  jsonb            not null,
    count            bigint           not null default 0,
    mean             double precision not null default 0,
    m2               double precision not null default 0,
    log_mean         double precision not null default 0,
    log_m2           double precision not null default 0,
    recent           jsonb            not null default '[]',
    failed           bigint           not null default 0,
    first_run        bigint           not null,
    primary key (epoch_id, key)
);

-- Who changed what, when and why.
create table audit (
    id        bigint generated always as identity primary key,
    at        timestamptz not null default now(),
    uid       bigint      not null,
    action    text        not null check (action in ('pin', 'unpin', 'reset')),
    study_id  bigint      not null references studies,
    detail    jsonb       not null,
    why       text        not null
);
create index audit_study on audit (study_id, id);
