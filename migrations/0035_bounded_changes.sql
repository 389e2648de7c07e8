-- What users order is bounded: they have so many orders in force and so many changes a day, and what is in force is
-- found without looking at what has ended.

create index orders_of_owner on orders (owner_uid) where ended_at is null;
create index orders_by_user on orders (uid) where ended_at is null;
create index audit_by_user on audit (uid, at);
create index audit_of_order on audit (order_id) where order_id is not null;

-- Old lines of the audit go, and the orders that only they tell of, if a site says how long they are kept. Nobody else
-- removes a line, and nobody one of the last 30 days.
create or replace function refuse_change() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' and tg_level = 'ROW' and old.at < now() - interval '30 days'
       and current_setting('io_autotune.removes', true) = 'old changes' then
        return old;
    end if;
    raise exception '% is only added to', tg_table_name using errcode = 'insufficient_privilege';
end $$;
drop trigger audit_is_only_added_to on audit;
create trigger audit_is_only_added_to before update or truncate on audit
    for each statement execute function refuse_change();
create trigger audit_keeps_its_lines before delete on audit
    for each row execute function refuse_change();

-- Removes one batch of at most so many lines, and the ended orders of which no line is left. A line that a younger one
-- has undone stays as long as that one. It runs as the schema's owner, like remove_history. `more`: call it again.
create function remove_changes(older_than interval, most integer)
    returns table (lines bigint, orders bigint, more boolean)
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    cutoff constant timestamptz := now() - older_than;
    batch bigint[];
begin
    if older_than is null or now() - older_than > now() - interval '30 days' then
        raise exception 'changes of the last 30 days are not removed' using errcode = 'invalid_parameter_value';
    end if;
    if most is null or most not between 1 and 10000 then
        raise exception 'a batch has 1 to 10000 lines' using errcode = 'invalid_parameter_value';
    end if;
    perform set_config('io_autotune.removes', 'old changes', true);
    batch := array(select l.id from public.audit l
                   where l.at < cutoff
                     and not exists (select from public.audit younger where younger.undoes = l.id and younger.at >= cutoff)
                   order by l.id desc limit most);
    delete from public.audit l where l.id = any(batch);
    get diagnostics lines = row_count;
    perform set_config('io_autotune.removes', '', true);
    delete from public.orders o
    where o.ended_at < cutoff and not exists (select from public.audit l where l.order_id = o.id)
      and o.id in (select gone.id from public.orders gone
                   where gone.ended_at < cutoff
                     and not exists (select from public.audit l where l.order_id = gone.id) limit most);
    get diagnostics orders = row_count;
    more := lines = most or orders = most;
    return next;
end $$;
revoke execute on function remove_changes(interval, integer) from public;
-- Whoever may add judgements is the service; deploy/sql/roles.sql says the same of a role that is made later.
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
        execute format('grant execute on function remove_changes(interval, integer) to %s', held.role);
    end loop;
end $$;
