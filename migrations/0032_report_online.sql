-- What an agent inside a job did, for the nightly report: a record of each node that had one.
create view report.online as
select run_id, node, body -> 'online' as record
from reports
where body -> 'online' is not null and body -> 'online' <> 'null';
