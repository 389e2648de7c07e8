-- What a life writes: start, finish, judgement; each durable. The values are those of a run of the
-- service's.
\set study random(1, @studies@)
begin;
select id from studies where id = :study for update;
insert into runs (epoch_id, cluster, job_id, restart_count, uid, node, request, phase, role, parametrization,
                  reason, suggestion, delivery, nodes)
values (:study, 'pgbench', nextval('pgbench_job'), 0, 1000, 'n1', @request@, 'settled', 'settled',
        @parametrization@, @reason@, @suggestion@, @delivery@, 1)
returning id as run \gset
commit;
begin;
select id from runs where id = :run for no key update;
insert into reports (run_id, node, body) values (:run, 'n1', @report@);
update runs set finished_at = now(), elapsed = 20, wait_status = 0, applied = @applied@, epilog = @epilog@,
                measures = '{}', changes = changes + 1
where id = :run;
commit;
begin;
select id from studies where id = :study for update;
update epochs set judgements = judgements + 1, total = total + 1 where id = :study
returning judgements as ordinal \gset
insert into judgements (epoch_id, ordinal, run_id, effect, parametrization, elapsed, verdict)
values (:study, :ordinal, :run, 'sample', @parametrization@, 20, @verdict@);
update runs set state = 'counted', verdict = @verdict@, judged_at = now(), judged_ordinal = :ordinal,
                judged_changes = changes
where id = :run;
insert into tested (epoch_id, key, parametrization, count, recent, first_run)
values (:study, 'key', @parametrization@, 1, @recent@, :run)
on conflict (epoch_id, key) do update set count = tested.count + 1, recent = excluded.recent;
commit;
