-- Runs that ran out of memory are told from other failures: one is enough to quarantine a parametrization. What an
-- earlier version judged stays a failure, because suggestions were made from it.

-- A large history takes longer than one of the service's statements may.
set local statement_timeout = 0;

alter table judgements
    drop constraint judgements_effect_check,
    add constraint judgements_effect_check check (
        effect in ('sample', 'censored', 'failure', 'out_of_memory', 'nothing'));

alter table tested
    -- How many of the failed runs ran out of memory.
    add column out_of_memory bigint not null default 0;

-- The latest run of an epoch that Slurm has spoken of tells the time limit of the next. A launch that was put back into the
-- queue may be told without one.
create index runs_told on runs (epoch_id, id) where outcome is not null and outcome <> 'REQUEUED';
