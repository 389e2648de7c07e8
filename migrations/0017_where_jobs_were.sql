-- Root of a node can report a run of a job that is elsewhere, or say that it is another user's: Slurm's word decides.
alter table outcomes
    -- Whose job it was; null: the source does not tell.
    add column uid        bigint check (uid between 0 and 4294967295),
    -- Its nodes, as Slurm's hostlist; null: the source does not tell, or it had none.
    add column node_list  text check (node_list <> '');
