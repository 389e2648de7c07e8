-- Users of one application may hear each other's runs, by a rule of the site: its name, `group G` or `account A`. Everyone
-- keeps their own study, and it hears those of the same application, accelerator, context and share.
alter table studies add column share text check (share ~ '^(group|account) [^[:cntrl:]]+$' and length(share) <= 300);
create index studies_shared on studies (share, accelerator, context_key) where share is not null;

-- What a study's current epoch knows is as old as the first of those whose runs it took.
create view study_beginnings as
select distinct on (study_id) study_id, ordinal, opened_at, takes, drift is not null as drifted
from epochs where takes <> 'runs' order by study_id, ordinal desc;

call narrow_rights();
