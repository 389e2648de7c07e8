-- What a study's epoch has learnt of its space, for studies that begin: renewed at verdicts, and only read at a start.
create table sources (
    study_id    bigint  primary key references studies,
    epoch_id    bigint  not null references epochs,
    accelerator text    not null,
    -- Of the epoch's space: others know something of it that have the same.
    space_key   bigint  not null,
    -- Number of judgements that it is made of.
    judged      bigint  not null check (judged > 0),
    -- What runs of the default did: logarithms by name.
    measures    jsonb   not null,
    learnt      jsonb   not null
);
-- The latest epochs first: this order changes only when another study has learnt enough.
create index sources_of_space on sources (accelerator, space_key, epoch_id desc);

call narrow_rights();
