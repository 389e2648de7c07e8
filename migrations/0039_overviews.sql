-- By which engine and settings a study was assessed last, so that a list of studies needs neither: where they are others
-- now, or an earlier program assessed it, the next sweeps assess it again, a few at a time, which the index finds.

alter table studies add column assessed_by text;
create index studies_by_assessor on studies (assessed_by) where assessment is not null;
