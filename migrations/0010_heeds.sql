-- What an epoch's runs were told of parameters that the accelerator can be asked for: which of them the application does
-- not heed. A cache over the runs, each of which enters once, with its first verdict.
alter table epochs
    add column heeds jsonb not null default '{}';
