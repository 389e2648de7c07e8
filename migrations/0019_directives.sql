-- What became of the directives of a job's burst buffer, which slurmctld's host completes before the job's prologs.
alter table runs
    -- As the burst buffer's account tells it; null: nobody has said that any were completed.
    add column directives jsonb;
