-- Who did what: written in the transaction that has the effect. Columns that an answer has no value for are NULL.
CREATE TABLE audit_events (
    id              uuid PRIMARY KEY,
    at              timestamptz NOT NULL,
    user_name       text        NOT NULL,
    project_id      text        NOT NULL,
    role            text        NOT NULL,
    action          text        NOT NULL,
    address         text        NOT NULL,
    request_id      text        NOT NULL,
    vnf_instance_id uuid,
    op_occ_id       uuid,
    resource_id     text,
    outcome         integer     NOT NULL
);
CREATE INDEX audit_events_instance ON audit_events (vnf_instance_id, id) WHERE vnf_instance_id IS NOT NULL;

-- The Idempotency-Keys that have had their effect, with what the first answer was made of.
CREATE TABLE idempotency_keys (
    project_id  text        NOT NULL,
    user_name   text        NOT NULL,
    key         text        NOT NULL,
    fingerprint bytea       NOT NULL,
    resource_id text        NOT NULL,
    body        json,
    version     bigint      NOT NULL,
    created_at  timestamptz NOT NULL,
    CONSTRAINT idempotency_keys_once PRIMARY KEY (project_id, user_name, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys (created_at);
