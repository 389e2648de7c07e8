-- What runs did besides taking time, for the nightly report.
create view report.measures as
select epoch_id, ordinal, run_id, judged_at, measures
from judgements
where measures <> '{}';
