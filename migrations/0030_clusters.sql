-- One service may serve several clusters: the same job on another cluster's nodes and file systems is another study. Old
-- studies take the cluster of the service at its start (Store::serve_clusters), as only it knows which that is.
alter table studies add column cluster text check (cluster <> '');
create unique index studies_of_cluster on studies (application_id, accelerator, context_key, cluster);

-- The key of before stays while one cluster is served, for programs that do not know clusters. With a second one it goes,
-- and these programs with it. As the schema's owner: nobody else changes tables.
create function separate_clusters() returns void
    language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
    if exists (select from pg_constraint where conrelid = 'public.studies'::regclass
               and conname = 'studies_application_id_accelerator_context_key_key') then
        -- Errs if a study has none.
        alter table public.studies alter column cluster set not null,
            drop constraint studies_application_id_accelerator_context_key_key;
        update public.schema_needs set migration = greatest(migration, 30);
    end if;
end $$;

-- Whoever may add judgements is the service; deploy/sql/roles.sql says the same of a role that is made later.
revoke execute on function separate_clusters() from public;
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
        execute format('grant execute on function separate_clusters() to %s', held.role);
    end loop;
end $$;

-- Null: on any cluster, as before.
alter table orders add column cluster text check (cluster <> '');
drop index orders_of_scope;
create unique index orders_of_scope on orders (kind, coalesce(study_id, 0), coalesce(owner_uid, -1),
                                               coalesce(application, ''), coalesce(accelerator, ''),
                                               coalesce(cluster, ''))
    where ended_at is null;

create or replace view orders_in_force as
select s.id as of_study, o.id, o.kind, o.pinned,
       16 * (o.study_id is not null)::int + 8 * (o.application is not null)::int
       + 4 * (o.owner_uid is not null)::int + 2 * (o.accelerator is not null)::int
       + (o.cluster is not null)::int as specificity
from studies s
join applications a on a.id = s.application_id
join orders o on (o.study_id is null or o.study_id = s.id)
             and (o.owner_uid is null or o.owner_uid = a.owner_uid)
             and (o.application is null or o.application = a.name)
             and (o.accelerator is null or o.accelerator = s.accelerator)
             and (o.cluster is null or o.cluster = s.cluster)
where o.ended_at is null and (o.until is null or o.until > now());

alter table audit
    drop constraint audit_action_check,
    add constraint audit_action_check check (action in ('pin', 'unpin', 'reset', 'accept', 'freeze', 'resume', 'off',
                                                        'on', 'undo', 'export', 'import', 'warm-start', 'retention',
                                                        'objective', 'map-cluster'));

create or replace view report.studies as
select s.id as study_id, a.name as application, a.owner_uid,
       coalesce(a.owner_name, a.owner_uid::text) as "user", s.accelerator, s.context,
       p.study_id is not null as pinned, p.parametrization as pin, p.pinned_at, s.created_at, s.cluster
from studies s
join applications a on a.id = s.application_id
left join pins p on p.study_id = s.id and (p.until is null or p.until > now());

call narrow_rights();
