-- The tables of a service, with as many studies as it had and nothing else: each study has its epoch's id.
-- No trigger keeps the audit.
set session_replication_role = replica;
create temporary table kept as select space from epochs limit 1;
truncate applications, studies, epochs, runs, reports, judgements, tested, outcomes cascade;
set session_replication_role = default;
insert into applications (id, owner_uid, name) overriding system value values (1, 1000, 'pgbench');
insert into studies (id, application_id, accelerator, context, context_key) overriding system value
select n, 1, 'romio', '{}', n::text from generate_series(1, @studies@) n;
insert into epochs (id, study_id, ordinal, takes, space, seed, opened_why) overriding system value
select n, n, 1, 'nothing', kept.space, n, 'first run' from generate_series(1, @studies@) n, kept;
create sequence pgbench_job cache 100;
grant usage on sequence pgbench_job to public;
