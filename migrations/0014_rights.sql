-- History is only added to, whoever asks: the schema itself says what roles other than its owner may do with each table.

-- Even the owner, whom a site may have the service run as, changes no line of the audit by mistake or by injection.
create function refuse_change() returns trigger language plpgsql as $$
begin
    raise exception '% is only added to', tg_table_name using errcode = 'insufficient_privilege';
end $$;
create trigger audit_is_only_added_to before update or delete or truncate on audit
    for each statement execute function refuse_change();

-- Takes from every role but the owner what the service's work does not need. deploy/sql/roles.sql grants broadly, now
-- and for later tables, and then calls this; a migration that adds a table says here what it is for, and calls it too.
create procedure narrow_rights() language plpgsql as $$
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
        -- Caches, pins that end, records that met no run, and what was read long ago.
        if held.name not in ('tested', 'pins', 'outcomes', 'nonces') then
            never := never || ', delete';
        end if;
        if held.name in ('audit', 'judgements', 'reports', 'nonces', 'schema_needs', '_sqlx_migrations') then
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
revoke execute on procedure narrow_rights() from public;
call narrow_rights();
