-- A site may bound what is kept of runs. What a study knows is in its epochs, `tested`, its evidence and its
-- assessment, and stays. Two kinds of things go, by the function below and by nothing else:
--
--  * The runs of an epoch that is over, with their judgements, reports and outcome records: another epoch has
--    followed, nothing takes runs from this one, nothing is awaited of any of its runs, and all of it is old.
--  * Of other old runs what is long and only explains them: nodes' reports, and what was decided from.

alter table epochs
    -- When retention began to remove the epoch's runs: from then on its judgements are not added up anew.
    add column removed_at timestamptz,
    -- Of its runs then: the last one, and the latest start.
    add column removed_run bigint,
    add column removed_start timestamptz,
    add constraint epochs_removed check (num_nulls(removed_at, removed_run, removed_start) in (0, 3));

alter table runs
    -- When retention removed its reports and what it was decided from: nothing that is heard of it later changes it.
    add column trimmed_at timestamptz;
create index runs_untrimmed on runs (judged_at) where trimmed_at is null;

-- A study may begin with what another has learnt.
alter table audit
    drop constraint audit_action_check,
    add constraint audit_action_check check (action in ('pin', 'unpin', 'reset', 'accept', 'freeze', 'resume', 'off',
                                                        'on', 'undo', 'export', 'import', 'warm-start', 'retention'));

-- When something was last heard of each run; null: it has no verdict. A role that may only add judgements and reports
-- cannot make them older than they are; the rest of a run it can write.
create view runs_heard as
select r.id, r.epoch_id, r.started_at, r.judged_at, r.trimmed_at,
       r.changes > r.judged_changes or r.dirty as is_awaited,
       case when r.state <> 'in_flight' and j.at is not null
            then greatest(r.started_at, j.at, p.at, o.at) end as heard_at
from runs r
cross join lateral (select max(judged_at) as at from judgements where run_id = r.id) j
cross join lateral (select max(received_at) as at from reports where run_id = r.id) p
cross join lateral (select max(received_at) as at from outcomes where run_id = r.id) o;

-- The epochs whose runs may go, of one study or of all; children before their parents.
create function epochs_to_remove(cutoff timestamptz, only_study bigint default null)
    returns table (epoch_id bigint, study_id bigint, ordinal integer)
    language sql stable set search_path = pg_catalog, pg_temp set jit = off as $$
    with recursive closed as (
        select e.id, e.study_id, e.parent_id, e.takes, e.ordinal, e.removed_at,
               case when e.removed_at is not null then true
                    -- Another epoch followed before the cutoff, and what this one's runs have shown is kept.
                    when not exists (select from public.epochs later
                                     where later.study_id = e.study_id and later.ordinal > e.ordinal
                                       and later.opened_at < cutoff) then false
                    when e.evidence is null then false
                    -- One look at an index, before all its runs are looked at.
                    when exists (select from public.judgements j
                                 where j.epoch_id = e.id and j.ordinal = e.judgements and j.judged_at >= cutoff)
                        then false
                    else not exists (select from public.runs_heard r
                                     where r.epoch_id = e.id
                                       and (r.is_awaited or r.heard_at is null or r.heard_at >= cutoff))
               end as is_over
        from public.epochs e where only_study is null or e.study_id = only_study
    ), needed as (
        select id, parent_id, takes from closed where not is_over
        union
        -- What takes runs is added up from its parent's.
        select parent.id, parent.parent_id, parent.takes
        from needed join closed parent on parent.id = needed.parent_id
        where needed.takes = 'runs'
    )
    select c.id, c.study_id, c.ordinal from closed c
    where c.removed_at is null and c.id not in (select id from needed)
      and exists (select from public.runs r where r.epoch_id = c.id)
    order by c.study_id, c.ordinal desc
$$;

-- Removes one batch, of at most so many runs, and writes its line of the audit. It runs as the schema's owner, because
-- nobody else may delete history: so whoever is the service by stealth has this alone, and it spares what is younger
-- than 30 days, whatever it is told. `more`: call it again.
create function remove_history(older_than interval, most integer, by_uid bigint, by_why text)
    returns table (runs bigint, judgements bigint, reports bigint, outcomes bigint, trimmed bigint,
                   first_start timestamptz, last_start timestamptz, more boolean)
    language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $$
#variable_conflict use_column
declare
    cutoff constant timestamptz := now() - older_than;
    batch bigint[];
    over_epoch record;
begin
    if older_than is null or now() - older_than > now() - interval '30 days' then
        raise exception 'runs of the last 30 days are not removed' using errcode = 'invalid_parameter_value';
    end if;
    if most is null or most not between 1 and 1000 then
        raise exception 'a batch has 1 to 1000 runs' using errcode = 'invalid_parameter_value';
    end if;
    runs := 0; judgements := 0; reports := 0; outcomes := 0; trimmed := 0; more := false;

    -- An epoch that is being removed.
    select e.id, e.study_id, e.ordinal into over_epoch from public.epochs e
    where e.removed_at is not null
      and exists (select from public.runs_heard r where r.epoch_id = e.id and r.heard_at < cutoff)
    order by e.id limit 1;
    if found then
        batch := array(select r.id from public.runs r join public.runs_heard h on h.id = r.id
                       where r.epoch_id = over_epoch.id and h.epoch_id = over_epoch.id and h.heard_at < cutoff
                       order by r.id limit most for update of r skip locked);
        delete from public.judgements j where j.run_id = any(batch);
        get diagnostics judgements = row_count;
        delete from public.reports p where p.run_id = any(batch);
        get diagnostics reports = row_count;
        delete from public.outcomes o where o.run_id = any(batch);
        get diagnostics outcomes = row_count;
        select min(r.started_at), max(r.started_at) into first_start, last_start
        from public.runs r where r.id = any(batch);
        delete from public.runs r where r.id = any(batch);
        get diagnostics runs = row_count;
        if runs > 0 then
            insert into public.audit (uid, action, study_id, detail, why)
            values (by_uid, 'retention', over_epoch.study_id,
                    jsonb_build_object('epoch', over_epoch.ordinal, 'runs', runs, 'judgements', judgements,
                                       'reports', reports, 'outcomes', outcomes, 'from', first_start,
                                       'to', last_start, 'older_than', extract(epoch from older_than)),
                    by_why);
            more := true;
        end if;
        return next;
        return;
    end if;

    -- The next one: it is only marked, under its study's lock, which is held no longer than that. Studies are looked at
    -- one after the other: to look at all their runs for one epoch would take longer the more there is to remove.
    for over_epoch in
        select distinct e.study_id from public.epochs e
        where e.removed_at is null and e.evidence is not null
          and exists (select from public.epochs later where later.study_id = e.study_id and later.ordinal > e.ordinal
                      and later.opened_at < cutoff)
          and exists (select from public.judgements j
                      where j.epoch_id = e.id and j.ordinal = e.judgements and j.judged_at < cutoff)
          -- The latest epoch's runs are added up from its parent's.
          and not exists (select from public.epochs child
                          where child.parent_id = e.id and child.takes = 'runs'
                            and not exists (select from public.epochs later where later.study_id = child.study_id
                                            and later.ordinal > child.ordinal))
        order by e.study_id
    loop
        perform from public.epochs_to_remove(cutoff, over_epoch.study_id);
        continue when not found;
        perform from public.studies s where s.id = over_epoch.study_id for update skip locked;
        continue when not found;
        update public.epochs e
        set removed_at = now(), removed_run = there.last_run, removed_start = there.last_start
        from public.epochs_to_remove(cutoff, over_epoch.study_id) gone
             cross join lateral (select max(r.id) as last_run, max(r.started_at) as last_start
                                 from public.runs r where r.epoch_id = gone.epoch_id) there
        where e.id = gone.epoch_id;
        more := true;
        return next;
        return;
    end loop;

    batch := array(select r.id from public.runs r join public.runs_heard h on h.id = r.id
                   where r.trimmed_at is null and r.judged_at < cutoff
                     and not h.is_awaited and h.heard_at < cutoff
                   order by r.judged_at limit most for update of r skip locked);
    delete from public.reports p where p.run_id = any(batch);
    get diagnostics reports = row_count;
    -- Evidence that is computed anew needs the probability of the draw.
    update public.runs r
    set trimmed_at = now(),
        suggestion = jsonb_strip_nulls(jsonb_build_object(
            'control_chance', r.suggestion -> 'control_chance', 'no_start', r.suggestion -> 'no_start',
            'removed_at', now()))
    where r.id = any(batch);
    get diagnostics trimmed = row_count;
    if trimmed > 0 then
        select min(r.started_at), max(r.started_at) into first_start, last_start
        from public.runs r where r.id = any(batch);
        insert into public.audit (uid, action, study_id, detail, why)
        values (by_uid, 'retention', null,
                jsonb_build_object('trimmed', trimmed, 'reports', reports, 'from', first_start, 'to', last_start,
                                   'older_than', extract(epoch from older_than)),
                by_why);
        more := true;
    end if;
    return next;
end $$;

-- Whoever may add judgements is the service; deploy/sql/roles.sql says the same of a role that is made later.
revoke execute on function epochs_to_remove(timestamptz, bigint) from public;
revoke execute on function remove_history(interval, integer, bigint, text) from public;
do $$
declare
    held record;
begin
    for held in
        select distinct a.grantee::regrole as role
        from pg_class c cross join lateral aclexplode(c.relacl) a
        where c.oid = 'public.judgements'::regclass and a.privilege_type = 'INSERT'
          and a.grantee not in (0, c.relowner)
    loop
        execute format('grant execute on function epochs_to_remove(timestamptz, bigint), remove_history(interval, integer, bigint, text) to %s',
                       held.role);
    end loop;
end $$;
