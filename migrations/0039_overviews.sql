-- By which release, engine and settings a study was assessed last, so that a list of studies needs no look at their
-- runs. Where these are others now, the next sweeps assess it again, a few at a time, which the index finds. Null: it is
-- to be assessed again.

alter table studies add column assessed_by text;
create index studies_by_assessor on studies (assessed_by);

-- Programs before this one write assessments without an overview, and do not know the column.
create function forget_assessor() returns trigger language plpgsql as $$
begin
    new.assessed_by := null;
    return new;
end
$$;
create trigger forget_assessor before update of assessment on studies
for each row when (new.assessment is not null and not new.assessment ? 'overview')
execute function forget_assessor();
