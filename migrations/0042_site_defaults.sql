-- An admin may make a setting the site's default for an accelerator: an order like others, which ends and is undone as
-- they are. What the service would advise is computed now and then from what the site's studies have learnt.

alter table orders
    drop constraint orders_kind_check,
    add constraint orders_kind_check check (kind in ('pin', 'freeze', 'off', 'site-default')),
    drop constraint orders_check,
    add constraint orders_values check ((kind in ('pin', 'site-default')) = (pinned is not null)),
    -- It is of an accelerator, on one cluster or on all, and of no user or application.
    add constraint orders_site_default check (kind <> 'site-default' or (accelerator is not null and study_id is null
                                              and owner_uid is null and application is null));

alter table audit
    drop constraint audit_action_check,
    add constraint audit_action_check check (action in ('pin', 'unpin', 'reset', 'accept', 'freeze', 'resume', 'off',
                                                        'on', 'undo', 'export', 'import', 'warm-start', 'retention',
                                                        'objective', 'map-cluster', 'search-again', 'forget',
                                                        'site-default', 'end-site-default'));

-- As in 0030_clusters.sql. A release before this one takes whatever has pinned values for a pin: a site's default has
-- them in a column of its own.
create or replace view orders_in_force as
select s.id as of_study, o.id, o.kind, case when o.kind = 'pin' then o.pinned end as pinned,
       16 * (o.study_id is not null)::int + 8 * (o.application is not null)::int
       + 4 * (o.owner_uid is not null)::int + 2 * (o.accelerator is not null)::int
       + (o.cluster is not null)::int as specificity,
       o.pinned as given
from studies s
join applications a on a.id = s.application_id
join orders o on (o.study_id is null or o.study_id = s.id)
             and (o.owner_uid is null or o.owner_uid = a.owner_uid)
             and (o.application is null or o.application = a.name)
             and (o.accelerator is null or o.accelerator = s.accelerator)
             and (o.cluster is null or o.cluster = s.cluster)
where o.ended_at is null and (o.until is null or o.until > now());

-- The setting that the studies of an accelerator have in common, in the space of the epoch that began last.
create table site_settings (
    cluster     text        not null,
    accelerator text        not null,
    -- A hash of the epochs that it is made of and of their numbers of judgements.
    made_of     text        not null,
    made_at     timestamptz not null default now(),
    -- Null: they have none in common.
    found       jsonb       check (jsonb_typeof(found) = 'object'),
    primary key (cluster, accelerator)
);

create view report.site_settings as
select k.cluster, k.accelerator, k.made_at, k.found,
       (select o.pinned from orders o
        where o.kind = 'site-default' and o.accelerator = k.accelerator and coalesce(o.cluster, k.cluster) = k.cluster
          and o.ended_at is null and (o.until is null or o.until > now())
        order by o.cluster nulls last, o.id desc limit 1) as in_force
from site_settings k;

call narrow_rights();
