-- The role that the nightly report reads as: the views of schema `report`, and nothing else. Run once by a
-- superuser, in the service's database, after its schema is made:
--
--     sudo -u postgres psql --dbname io_autotune --single-transaction --file report-role.sql
--
-- Views of later migrations are granted by default.
do $$
begin
    if not exists (select from pg_roles where rolname = 'io-autotune-report') then
        create role "io-autotune-report" login;
    end if;
end $$;
alter role "io-autotune-report" set default_transaction_read_only = on;
-- One report at a time, with some to spare.
alter role "io-autotune-report" connection limit 16;
-- Large objects are of no table: whoever may connect could fill the disk with them.
revoke execute on function lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea), lo_put(oid, bigint, bytea),
    lowrite(integer, bytea) from public;
-- A million runs are read in a minute or two.
alter role "io-autotune-report" set statement_timeout = '15min';
alter role "io-autotune-report" set lock_timeout = '1min';
alter role "io-autotune-report" set idle_in_transaction_session_timeout = '1h';
do $$
begin
    execute format('revoke temporary on database %I from public', current_database());
    execute format('grant connect on database %I to "io-autotune-report"', current_database());
    execute format('alter default privileges for role %s in schema report grant select on tables to "io-autotune-report"',
                   (select nspowner::regrole from pg_namespace where nspname = 'report'));
end $$;
revoke all on all tables in schema public from "io-autotune-report";
grant usage on schema report to "io-autotune-report";
grant select on all tables in schema report to "io-autotune-report";
