-- Columns in the field's words.
alter table runs rename column news to changes;
alter table runs rename column judged_news to judged_changes;
alter table runs rename constraint runs_judged_news to runs_judged_changes;
alter table runs rename column recurrence to generation;
alter table runs rename column unmerged to dirty;
alter table epochs rename column heeds to parameter_effects;

-- A program that knows the old names must not run against the new ones.
update schema_needs set migration = 13;
