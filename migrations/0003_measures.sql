-- Measures enter the caches, so that methods can learn from them beside elapsed. Nodes have reported none so
-- far: there is nothing to carry over.

alter table judgements
    -- What a run that counts was measured by besides elapsed when it was judged: positive numbers by name.
    add column measures jsonb not null default '{}';

alter table tested
    -- By name, count, mean and sum of squared deviations of the logarithms.
    add column measures jsonb not null default '{}';
