-- The role that the nightly report reads as: the views of schema `report`, and nothing else. Run once by a
-- superuser, in the service's database, after io-autotuned has migrated it:
--
--     sudo -u postgres psql --dbname io_autotune --file report-role.sql
--
-- Run it again after an upgrade that brings new views.
do $$
begin
    if not exists (select from pg_roles where rolname = 'io-autotune-report') then
        create role "io-autotune-report" login;
    end if;
end $$;
alter role "io-autotune-report" set default_transaction_read_only = on;
grant usage on schema report to "io-autotune-report";
grant select on all tables in schema report to "io-autotune-report";
