-- How all runs of a cluster fared lately: known before a run starts, it may explain noise in the
-- evidence of a gain. Written each sweep, never changed: evidence that is computed again meets the same.
create table surroundings (
    cluster   text             not null,
    at        timestamptz      not null default now(),
    -- The median log of elapsed over what was expected of each run, towards 0 with few runs.
    slowness  double precision not null,
    runs      bigint           not null check (runs > 0),
    primary key (cluster, at)
);

create index runs_finished on runs (finished_at) where state = 'counted';
