-- Admins pin and freeze many studies at once, users turn the tuning of an application off. Such an
-- order holds for studies that begin later too, so it is a rule and not a row of each study.

alter table pins
    -- It is in force before; null: until it is unpinned.
    add column until timestamptz;

create table orders (
    id           bigint generated always as identity primary key,
    kind         text        not null check (kind in ('pin', 'freeze', 'off')),
    -- Which studies; null: any.
    study_id     bigint      references studies,
    owner_uid    bigint      check (owner_uid between 0 and 4294967295),
    application  text        check (application <> ''),
    accelerator  text        check (accelerator <> ''),
    -- Of a pin: values as text by parameter. Other parameters keep the default.
    pinned       jsonb       check (jsonb_typeof(pinned) = 'object'),
    uid          bigint      not null,
    why          text        not null,
    ordered_at   timestamptz not null default now(),
    until        timestamptz,
    -- Rows are kept: the audit tells of them.
    ended_at     timestamptz,
    check ((kind = 'pin') = (pinned is not null)),
    -- A study's own pin is in `pins`.
    check (kind <> 'pin' or study_id is null)
);
-- One of a kind for a scope.
create unique index orders_of_scope on orders (kind, coalesce(study_id, 0), coalesce(owner_uid, -1),
                                               coalesce(application, ''), coalesce(accelerator, ''))
    where ended_at is null;

-- What is in force now for each study. Of several pins the most specific holds, then the newest.
create view orders_in_force as
select s.id as of_study, o.id, o.kind, o.pinned,
       8 * (o.study_id is not null)::int + 4 * (o.application is not null)::int
       + 2 * (o.owner_uid is not null)::int + (o.accelerator is not null)::int as specificity
from studies s
join applications a on a.id = s.application_id
join orders o on (o.study_id is null or o.study_id = s.id)
             and (o.owner_uid is null or o.owner_uid = a.owner_uid)
             and (o.application is null or o.application = a.name)
             and (o.accelerator is null or o.accelerator = s.accelerator)
where o.ended_at is null and (o.until is null or o.until > now());

alter table audit
    -- Null: it was about the studies of an order.
    alter column study_id drop not null,
    add column order_id bigint references orders,
    -- The line that this one has undone.
    add column undoes bigint references audit,
    drop constraint audit_action_check,
    add constraint audit_action_check check (action in ('pin', 'unpin', 'reset', 'accept', 'freeze', 'resume', 'off',
                                                        'on', 'undo', 'export', 'import'));
create unique index audit_undone_once on audit (undoes);

create or replace view report.studies as
select s.id as study_id, a.name as application, a.owner_uid,
       coalesce(a.owner_name, a.owner_uid::text) as "user", s.accelerator, s.context,
       p.study_id is not null as pinned, p.parametrization as pin, p.pinned_at, s.created_at
from studies s
join applications a on a.id = s.application_id
left join pins p on p.study_id = s.id and (p.until is null or p.until > now());

call narrow_rights();
