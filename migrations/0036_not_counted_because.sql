-- Why a run does not count is one of a list (io_autotune_model::NotCountedBecause), beside the verdict's sentence. Null
-- where a run counts, and where an earlier release judged.
alter table judgements
    add column not_counted_because text check (not_counted_because ~ '^[a-z_]{1,40}$');

-- The latest word on runs that do not count, for the nightly report.
create view report.not_counted as
select r.epoch_id, r.id as run_id, j.judged_at, j.not_counted_because as because
from runs r
join judgements j on j.epoch_id = r.epoch_id and j.ordinal = r.judged_ordinal
where r.state = 'not_counted';
