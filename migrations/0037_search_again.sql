-- A study that had settled and whose accelerator changed so that it searches again: its owner reads it in the audit.
alter table audit
    drop constraint audit_action_check,
    add constraint audit_action_check check (action in ('pin', 'unpin', 'reset', 'accept', 'freeze', 'resume', 'off',
                                                        'on', 'undo', 'export', 'import', 'warm-start', 'retention',
                                                        'objective', 'map-cluster', 'search-again'));
