-- A page of the list of studies, which is in the order of applications' names, begins after the one before it. Without
-- this index each page reads all studies.

create index applications_by_name on applications (name, owner_uid);
