-- What exploring takes on a day, of each user, account, partition and the site that has a budget in service.toml
-- ([exploring] node_hours). Counters, because a start must not add up the runs of a day.
create table exploring_spent (
    -- On which the runs started, by the clock of the service's host.
    day           date              not null,
    budget_of     text              not null check (budget_of in ('user', 'account', 'partition', 'site')),
    -- Empty of a user and of the site: they have one budget on all clusters.
    cluster       text              not null,
    -- A uid, an account, a partition; empty of the site.
    name          text              not null,
    -- Of runs in flight what they are expected to take.
    node_seconds  double precision  not null,
    primary key (day, budget_of, cluster, name)
) with (fillfactor = 50);

-- What an exploring run was charged at its start, until its verdict: then what it took is in the counters instead.
create table exploring_charges (
    -- Not a reference: retention deletes runs, whatever a program before this one has left here.
    run_id        bigint            not null,
    budget_of     text              not null,
    day           date              not null,
    cluster       text              not null,
    name          text              not null,
    node_seconds  double precision  not null,
    primary key (run_id, budget_of)
);

-- For the nightly report.
create view report.exploring_spent as
select s.day, s.budget_of, s.cluster,
       case when s.budget_of = 'user'
            then coalesce((select max(a.owner_name) from applications a where a.owner_uid = s.name::bigint), s.name)
            else s.name end as name,
       s.node_seconds / 3600 as node_hours
from exploring_spent s;

-- As in 0022_imports.sql; counters of days long ago and charges of ended runs are removed as well.
create or replace procedure narrow_rights() language plpgsql as $$
declare
    held record;
    never text;
begin
    for held in
        select distinct c.oid::regclass as relation, c.relname as name, a.grantee
        from pg_class c cross join lateral aclexplode(c.relacl) a
        where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p') and a.grantee <> c.relowner
    loop
        never := 'truncate, references, trigger';
        -- Caches, pins that end, records that met no run, what was read long ago, pieces of imports, and counters.
        if held.name not in ('tested', 'pins', 'outcomes', 'nonces', 'import_chunks', 'exploring_spent',
                             'exploring_charges') then
            never := never || ', delete';
        end if;
        if held.name in ('audit', 'judgements', 'reports', 'nonces', 'import_chunks', 'schema_needs',
                         '_sqlx_migrations') then
            never := never || ', update';
        end if;
        -- The owner migrates.
        if held.name in ('schema_needs', '_sqlx_migrations') then
            never := never || ', insert';
        end if;
        execute format('revoke %s on %s from %s', never, held.relation,
                       case held.grantee when 0 then 'public' else held.grantee::regrole::text end);
    end loop;
end $$;
call narrow_rights();
