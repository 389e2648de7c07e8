-- Whose account a study is: an account's coordinators see its members' studies. Kept beside the study and not in its row,
-- which is locked while a run's parametrization is worked out, when an outcome record need not wait.
create table study_accounts (
    study_id  bigint  primary key references studies,
    cluster   text    not null,
    -- What Slurm said of the latest run of which it said any: the owner's own text where associations are not enforced.
    account   text    not null check (account <> ''),
    -- Not a reference: the run may be removed as old, and what it said of the study stays.
    run_id    bigint  not null
);

-- A large history takes longer than one of the service's statements may.
set local statement_timeout = 0;
insert into study_accounts (study_id, cluster, account, run_id)
select distinct on (e.study_id) e.study_id, r.cluster, o.account, r.id
from outcomes o
join runs r on r.id = o.run_id
join epochs e on e.id = r.epoch_id
join studies s on s.id = e.study_id
join applications a on a.id = s.application_id
where o.account <> '' and coalesce(o.uid, a.owner_uid) = a.owner_uid
order by e.study_id, r.id desc, o.id desc;

call narrow_rights();
