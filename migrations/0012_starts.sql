-- The latest runs of a parametrization say when they started, in seconds since 1970: order in time
-- tells a busy file system from different work. Runs are judged with it from now on; here the
-- caches of earlier ones get it too, so that they stay what their judgements add up to.
-- A large history takes longer than one of the service's statements may.
set local statement_timeout = 0;

update tested
set recent = (
    select jsonb_agg(
        run || jsonb_build_object(
            'started', floor(extract(epoch from runs.started_at))::bigint
        ) order by place
    )
    from jsonb_array_elements(recent) with ordinality as kept (run, place)
    left join runs on runs.id = (run ->> 'ordinal')::bigint
)
where recent <> '[]';

-- A program that knows no starts refuses the caches that have them.
update schema_needs set migration = 12;
