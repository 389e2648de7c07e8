-- An import arrives in pieces and is carried out at once: until then its pieces lie here, and nothing else
-- knows of it.
create table import_chunks (
    -- The importer's name for it.
    upload       text        not null check (upload ~ '^[0-9a-f]{32}$'),
    place        integer     not null check (place between 0 and 127),
    uid          bigint      not null check (uid between 0 and 4294967295),
    body         text        not null check (octet_length(body) between 1 and 524288),
    received_at  timestamptz not null default now(),
    primary key (upload, place)
);
create index import_chunks_received on import_chunks (received_at);

-- As in 0014_rights.sql; pieces of imports are removed as well, and never changed.
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
        -- Caches, pins that end, records that met no run, what was read long ago, and pieces of imports.
        if held.name not in ('tested', 'pins', 'outcomes', 'nonces', 'import_chunks') then
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
