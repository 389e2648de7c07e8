-- Requests that change something once more if they are sent again: replicas share what they have
-- read. A nonce is forgotten when its credential has long expired.
create table nonces (
    nonce bytea primary key check (octet_length(nonce) = 16),
    seen_at timestamptz not null default now()
);
create index nonces_seen_at on nonces (seen_at);
call narrow_rights();
