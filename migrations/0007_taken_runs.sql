-- An epoch that follows another space takes the runs that still fit: what its parent's judgements had added up to
-- by then, as far as it fits the new space. Judgements of the parent that come later do not change it.
alter table epochs
    -- So many of the parent's judgements; null unless it takes runs.
    add column taken_judgements bigint check (taken_judgements >= 0);

alter table epochs
    add constraint epochs_takes_runs check ((takes = 'runs') = (taken_judgements is not null)),
    add constraint epochs_takes_of_parent check (takes = 'nothing' or parent_id is not null);
