-- What several nodes report is merged once for many reports, and no longer at each arrival.
alter table runs
    -- Reports have come that are not merged yet; elapsed is null until then.
    add column unmerged boolean not null default false;
