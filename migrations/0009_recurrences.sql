-- Slurm gives a job id again: its ids wrap around, or slurmctld is set up anew. The job that has it now is not the one
-- that had it, and gets runs of its own.

-- A large history takes longer than one of the service's statements may.
set local statement_timeout = 0;

alter table runs
    -- How often Slurm had given this job id and restart count to other launches before.
    add column recurrence integer not null default 0 check (recurrence >= 0),
    add constraint runs_launch unique (cluster, job_id, restart_count, recurrence),
    drop constraint runs_cluster_job_id_restart_count_key;

-- From here on the schema says which programs can work on it: a migration that older ones cannot work with raises
-- the number. Programs before this one ask for no such number, and need the constraint that is dropped above.
create table schema_needs (
    -- The newest migration that a program must know.
    migration  bigint  not null,
    only_row   boolean primary key default true check (only_row)
);
insert into schema_needs (migration) values (9);
