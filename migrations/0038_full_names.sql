-- What an application is called in full, where its name is not all of it: the job's name that squeue shows, or what a
-- rule made of that. Programs before this one leave it null, and go on.

alter table applications add column full_name text check (full_name <> '' and full_name <> name);
create index applications_by_full_name on applications (owner_uid, full_name) where full_name is not null;

-- Programs before this one put `_` in the place of each byte that a name cannot have. The history of one such job name
-- alone stays that job's, under its old name. What several were mixed in stays as it is, and none of them goes on in it.
update applications a
set full_name = one.job_name
from (select s.application_id, min(r.request ->> 'job_name') as job_name
      from applications old
      join studies s on s.application_id = old.id
      join epochs e on e.study_id = s.id
      join runs r on r.epoch_id = e.id
      where old.name like '%\_%'
      group by s.application_id
      having count(distinct r.request ->> 'job_name') = 1 and count(r.request ->> 'rule') = 0) one
where one.application_id = a.id and one.job_name <> a.name;

create or replace view report.studies as
select s.id as study_id, a.name as application, a.owner_uid,
       coalesce(a.owner_name, a.owner_uid::text) as "user", s.accelerator, s.context,
       p.study_id is not null as pinned, p.parametrization as pin, p.pinned_at, s.created_at, s.cluster, a.full_name
from studies s
join applications a on a.id = s.application_id
left join pins p on p.study_id = s.id and (p.until is null or p.until > now());
