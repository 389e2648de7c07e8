//! A clock that a test sets, in the place of PostgreSQL's.

/// The search path of every session: the test's functions hide PostgreSQL's, and new tables go into the
/// first schema.
pub(crate) const SEARCH_PATH: &str = "public, test_clock, pg_catalog";

/// The clock and the two functions that read it.
pub(crate) const CLOCK: &str = "
    create schema test_clock;
    create table test_clock.clock (ahead interval not null);
    insert into test_clock.clock values (interval '0');
    create function test_clock.now() returns timestamptz language sql stable
        as 'select pg_catalog.now() + ahead from test_clock.clock';
    create function test_clock.clock_timestamp() returns timestamptz language sql volatile
        as 'select pg_catalog.clock_timestamp() + ahead from test_clock.clock';
    grant usage on schema test_clock to public;
    grant select on test_clock.clock to public;
";

/// Functions that name `pg_catalog` as their own search path look at the test's clock, too.
pub(crate) const CLOCK_OF_CLOSED_FUNCTIONS: &str = "
    do $$
    declare closed record;
    begin
        for closed in
            select oid::regprocedure as name from pg_proc
            where pronamespace = 'public'::regnamespace
              and exists (select from unnest(proconfig) as one where one like 'search_path=pg_catalog%')
        loop
            execute format('alter function %s set search_path = test_clock, pg_catalog, pg_temp', closed.name);
        end loop;
    end $$;
";
