-- A run whose end Slurm does not tell counts only if a source has listed its job at some time: a made-up start, by which
-- root of any node could write history, is listed nowhere.
alter table runs
    -- When a source was first seen to list the job; null: never so far.
    add column listed_at timestamptz;
