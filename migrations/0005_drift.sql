-- Drift opens an epoch that keeps ranks: what the parent ranked best, and the change that was found.

alter table epochs
    -- The parametrizations that its parent ranked best, the best first; none where it takes no ranks.
    add column inherited jsonb not null default '[]' check (jsonb_typeof(inherited) = 'array'),
    -- The change that opened it, with the parent's judgements and settings that it was found with.
    add column drift jsonb,
    add constraint epochs_drift_keeps_ranks check (
        (drift is null or takes = 'ranks') and (takes = 'ranks' or inherited = '[]'));
