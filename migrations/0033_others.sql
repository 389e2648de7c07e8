-- How long others took while the latest runs ran, by the run's number; beside recent, which older
-- programs read, too.
alter table tested add column others jsonb not null default '{}';
