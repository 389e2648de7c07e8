-- A user who has left is forgotten, by io-autotuned --forget as the schema's owner. What becomes of each column is said
-- in one place (tuner-service/store/src/forget/columns.rs).

alter table applications
    -- Whose it was is forgotten since: owner, name and full name are made up.
    add column forgotten_at timestamptz;

-- Whose names a report that is kept may still have, with what to write in their place.
create view report.forgotten as
select s.id as study_id, a.name as application, a.owner_uid,
       coalesce(a.owner_name, a.owner_uid::text) as "user", a.full_name, a.forgotten_at
from studies s
join applications a on a.id = s.application_id
where a.forgotten_at is not null;

alter table audit
    drop constraint audit_action_check,
    add constraint audit_action_check check (action in ('pin', 'unpin', 'reset', 'accept', 'freeze', 'resume', 'off',
                                                        'on', 'undo', 'export', 'import', 'warm-start', 'retention',
                                                        'objective', 'map-cluster', 'search-again', 'forget'));

-- A line of the audit may lose the person, the reason and the details, and nothing else: number, time, action, study,
-- order and what it undoes stay. It says so itself where it has lost its details, and the same transaction has added a
-- line that says who forgot somebody, and when. Only the owner may update at all.
create function refuse_rewriting() returns trigger language plpgsql as $$
begin
    if (new.id, new.at, new.action, new.study_id, new.order_id, new.undoes)
           is not distinct from (old.id, old.at, old.action, old.study_id, old.order_id, old.undoes)
       and new.why in (old.why, '') and new.uid in (old.uid, nullif(current_setting('io_autotune.forgets_as', true), '')::bigint)
       and new.detail in (old.detail, '{"forgotten": true}')
       and exists (select from public.audit f
                   where f.id = nullif(current_setting('io_autotune.forgets_by', true), '')::bigint
                     and f.action = 'forget' and f.xmin::text = pg_current_xact_id()::xid::text) then
        return new;
    end if;
    raise exception '% is only added to', tg_table_name using errcode = 'insufficient_privilege';
end $$;
drop trigger audit_is_only_added_to on audit;
create trigger audit_is_only_added_to before truncate on audit
    for each statement execute function refuse_change();
create trigger audit_lines_stay before update on audit
    for each row execute function refuse_rewriting();

-- Other names for the measures that an application reports itself: `objective.forgotten-1` for the first of `names`, and so
-- on. They have letters, digits, _ and - alone. `in_words`: a sentence may have the name alone.
create function with_measures_renamed(told text, names text[], in_words boolean default false) returns text
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    -- In two steps, so that no new name is taken for an old one.
    for place in 1 .. cardinality(names) loop
        continue when strpos(told, names[place]) = 0;
        told := regexp_replace(told, '(?<![A-Za-z0-9_.-])objective\.' || names[place] || '(?![A-Za-z0-9_-])',
                               'objective.' || chr(2) || place || chr(3), 'g');
        if in_words then
            told := regexp_replace(told, '(?<![A-Za-z0-9_-])' || names[place] || '(?![A-Za-z0-9_-])',
                                   chr(2) || place || chr(3), 'g');
        end if;
    end loop;
    return regexp_replace(told, chr(2) || '(\d+)' || chr(3), 'forgotten-\1', 'g');
end $$;

-- The same in names and values at any depth. What a finding says is in words.
create function with_measures_renamed(told jsonb, names text[], in_words boolean default false) returns jsonb
    language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    -- One by one: a regular expression of thousands of names is too complex.
    if not exists (select from unnest(names) name where strpos(told::text, name) > 0) then
        return told;
    end if;
    return case jsonb_typeof(told)
        when 'object' then (select jsonb_object_agg(
                                       public.with_measures_renamed(key, names),
                                       public.with_measures_renamed(value, names, key in ('what', 'action')))
                            from jsonb_each(told))
        when 'array' then (select jsonb_agg(public.with_measures_renamed(value, names, in_words) order by ordinality)
                           from jsonb_array_elements(told) with ordinality)
        when 'string' then to_jsonb(public.with_measures_renamed(told #>> '{}', names, in_words))
        else told end;
end $$;
revoke execute on function with_measures_renamed(text, text[], boolean),
    with_measures_renamed(jsonb, text[], boolean) from public;
