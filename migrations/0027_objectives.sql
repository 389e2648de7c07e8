-- What an epoch makes small or large: elapsed, or a measure of its runs. Judgements keep elapsed; what enters the caches
-- in its place is read from their measures (Objective, in the model).
alter table epochs add constraint epochs_objective_check
    check (objective ~ '^(elapsed|marked_seconds|objective\.[A-Za-z][A-Za-z0-9_-]{0,31}( maximised)?)$');

alter table audit
    drop constraint audit_action_check,
    add constraint audit_action_check check (action in ('pin', 'unpin', 'reset', 'accept', 'freeze', 'resume', 'off',
                                                        'on', 'undo', 'export', 'import', 'warm-start', 'retention',
                                                        'objective'));

-- An epoch that another objective opened has forgotten nothing.
create or replace view study_beginnings as
select distinct on (e.study_id) e.study_id, e.ordinal, e.opened_at, e.takes, e.drift is not null as drifted,
       parent.objective is not null and parent.objective <> e.objective as has_turned
from epochs e left join epochs parent on parent.id = e.parent_id
where e.takes <> 'runs' order by e.study_id, e.ordinal desc;

call narrow_rights();
