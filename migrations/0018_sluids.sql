-- Slurm's own id of a launch, which it never gives again, tells launches of one job id apart.
alter table runs
    -- As Slurm 25.11 and later tells the prolog; null: this Slurm, or this helper, has none.
    add column sluid text check (sluid ~ '^s[0-9A-HJKMNP-TV-Z]{13}$');
