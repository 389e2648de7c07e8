-- The roles of the service's database: who owns the schema and changes it, and who works with it. Run by a superuser, in
-- the service's database, before io-autotuned --migrate; again at will, and once in a database of 0.2.0 or earlier,
-- with the service stopped:
--
--     sudo -u postgres psql --dbname io_autotune --single-transaction --file roles.sql
--
--   io-autotune-migrate  owns the database and its schema. Nobody logs in as it: a superuser becomes it. Where the
--                        database is another host's, `alter role "io-autotune-migrate" login password '...'`.
--   io-autotune          the service: reads and writes rows, and only adds to history. No table, no temporary table.
--   io-autotune-report   the nightly report: report-role.sql makes it.
--
-- Later migrations need no second run: their tables are granted by default.
do $$
begin
    if not exists (select from pg_roles where rolname = 'io-autotune-migrate') then
        create role "io-autotune-migrate" nologin;
    end if;
    if not exists (select from pg_roles where rolname = 'io-autotune') then
        create role "io-autotune" login;
    end if;
end $$;
alter role "io-autotune-migrate" nosuperuser nocreatedb nocreaterole noreplication nobypassrls;
alter role "io-autotune" nosuperuser nocreatedb nocreaterole noreplication nobypassrls;
-- The service sets its own, which are shorter; these bound whoever else comes with its role.
alter role "io-autotune" set statement_timeout = '60s';
alter role "io-autotune" set lock_timeout = '10s';
-- Below PostgreSQL's default of 100 for all, so that others still connect, whoever comes with its role. Three replicas
-- of the default's pools have room; say more for more of them.
alter role "io-autotune" connection limit 80;
alter role "io-autotune" set idle_in_transaction_session_timeout = '60s';

-- What a role of an earlier release owns. What is owned right is left alone: to alter a table locks out the service.
do $$
declare
    owned record;
begin
    execute format('alter database %I owner to "io-autotune-migrate"', current_database());
    for owned in
        select nspname from pg_namespace
        where nspname in ('public', 'report') and nspowner <> '"io-autotune-migrate"'::regrole
    loop
        execute format('alter schema %I owner to "io-autotune-migrate"', owned.nspname);
    end loop;
    -- Sequences follow the tables that they number, indexes theirs.
    for owned in
        select oid::regclass as relation from pg_class
        where relnamespace in (select oid from pg_namespace where nspname in ('public', 'report'))
          and relkind in ('r', 'p', 'v', 'm') and relowner <> '"io-autotune-migrate"'::regrole
    loop
        execute format('alter table %s owner to "io-autotune-migrate"', owned.relation);
    end loop;
    for owned in
        select oid::regprocedure as routine from pg_proc
        where pronamespace in (select oid from pg_namespace where nspname in ('public', 'report'))
          and proowner <> '"io-autotune-migrate"'::regrole
    loop
        execute format('alter routine %s owner to "io-autotune-migrate"', owned.routine);
    end loop;

    -- No role has anything by being there: no connection, no temporary table, no table of its own.
    execute format('revoke all on database %I from public', current_database());
    execute format('revoke all on database %I from "io-autotune"', current_database());
    execute format('grant connect on database %I to "io-autotune"', current_database());
    if exists (select from pg_roles where rolname = 'io-autotune-report') then
        execute format('grant connect on database %I to "io-autotune-report"', current_database());
    end if;
end $$;
-- Large objects are of no table: whoever may connect could fill the disk with them.
revoke execute on function lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea), lo_put(oid, bigint, bytea),
    lowrite(integer, bytea) from public;
revoke all on schema public from public;
revoke all on schema public from "io-autotune";
grant usage on schema public to "io-autotune";
grant select, insert, update, delete on all tables in schema public to "io-autotune";
alter default privileges for role "io-autotune-migrate" in schema public
    grant select, insert, update, delete on tables to "io-autotune";
alter default privileges for role "io-autotune-migrate" revoke execute on routines from public;
do $$
begin
    -- An older schema's migration calls it.
    if to_regprocedure('public.narrow_rights()') is not null then
        call public.narrow_rights();
    end if;
    -- History is removed by these alone; a later migration grants them itself.
    if to_regprocedure('public.remove_history(interval, integer, bigint, text)') is not null then
        grant execute on function public.epochs_to_remove(timestamptz, bigint),
            public.remove_history(interval, integer, bigint, text) to "io-autotune";
    end if;
    if to_regprocedure('public.remove_changes(interval, integer)') is not null then
        grant execute on function public.remove_changes(interval, integer) to "io-autotune";
    end if;
    if to_regprocedure('public.separate_clusters()') is not null then
        grant execute on function public.separate_clusters() to "io-autotune";
    end if;
end $$;
