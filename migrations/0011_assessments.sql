-- What is to be said of a study is decided once, by the engine, in the transaction of each verdict.

alter table epochs
    -- What the runs of the epoch have shown so far: the engine's, and bounded. Null before it is first asked.
    add column evidence jsonb;

alter table studies
    -- The gain and the findings, as the API and the report say them. Null before they are first asked for.
    add column assessment jsonb;

create view report.assessments as
select id as study_id, assessment
from studies
where assessment is not null;
