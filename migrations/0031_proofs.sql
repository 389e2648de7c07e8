-- Runs of what was recommended in a proof before the search has ended; their phase is search.
alter table epochs add column proof bigint not null default 0;
