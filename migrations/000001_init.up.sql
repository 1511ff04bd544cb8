-- Bodies are stored as they are answered (json, without _links); what is filtered, joined or locked on stands in
-- columns of its own. Columns named sealed hold AES-256-GCM envelopes, which do not compress. Rows that change often have
-- room beside them for the next version, and stay in one piece as long as a page holds them.

-- The nodes that live: each holds the session advisory lock (1986946669, lock_key) for as long as it does.
CREATE TABLE nodes (
    id         text PRIMARY KEY,
    lock_key   integer     NOT NULL UNIQUE,
    started_at timestamptz NOT NULL DEFAULT now()
);
CREATE SEQUENCE node_lock_key AS integer CYCLE;

CREATE TABLE vims (
    id          uuid PRIMARY KEY,
    project_id  text        NOT NULL,
    name        text        NOT NULL,
    type        text        NOT NULL,
    is_default  boolean     NOT NULL DEFAULT false,
    status      text        NOT NULL,
    auth_url    text        NOT NULL,
    body        json        NOT NULL,
    sealed      bytea       NOT NULL,
    version     bigint      NOT NULL DEFAULT 1,
    created_at  timestamptz NOT NULL,
    updated_at  timestamptz,
    CONSTRAINT vims_name UNIQUE (project_id, name)
);
CREATE UNIQUE INDEX vims_one_default ON vims (project_id) WHERE is_default;

-- A package's zip, in chunks, named by its digest once it is complete.
CREATE TABLE contents (
    id         uuid PRIMARY KEY,
    sha256     bytea UNIQUE,
    sha512     bytea,
    size       bigint      NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE content_chunks (
    content_id uuid    NOT NULL REFERENCES contents ON DELETE CASCADE,
    seq        integer NOT NULL,
    data       bytea   NOT NULL,
    PRIMARY KEY (content_id, seq)
);
ALTER TABLE content_chunks ALTER COLUMN data SET STORAGE EXTERNAL;

CREATE TABLE vnf_packages (
    id                uuid PRIMARY KEY,
    project_id        text        NOT NULL,
    onboarding_state  text        NOT NULL,
    operational_state text        NOT NULL,
    vnfd_id           text,
    content_id        uuid REFERENCES contents,
    body              json        NOT NULL,
    descriptor        json,
    sealed            bytea,
    owner             text,
    fence             bigint      NOT NULL DEFAULT 1,
    version           bigint      NOT NULL DEFAULT 1,
    created_at        timestamptz NOT NULL
);
CREATE UNIQUE INDEX vnf_packages_vnfd ON vnf_packages (vnfd_id) WHERE vnfd_id IS NOT NULL;
CREATE INDEX vnf_packages_content ON vnf_packages (content_id);
CREATE INDEX vnf_packages_project ON vnf_packages (project_id, id);
CREATE INDEX vnf_packages_live ON vnf_packages (id) WHERE onboarding_state IN ('UPLOADING', 'PROCESSING');

-- Instances and op occs refer to packages and VIMs without foreign keys: the key's row lock would make every reference
-- write to the one row that all refer to. Shared advisory locks keep what is referred to from being deleted meanwhile
-- (internal/store/references.go).
CREATE TABLE vnf_instances (
    id                  uuid PRIMARY KEY,
    project_id          text        NOT NULL,
    name                text        NOT NULL,
    vnfd_id             text        NOT NULL,
    vnf_pkg_id          uuid        NOT NULL,
    instantiation_state text        NOT NULL,
    vim_id              uuid,
    body                json        NOT NULL,
    sealed              bytea,
    version             bigint      NOT NULL DEFAULT 1,
    created_at          timestamptz NOT NULL
) WITH (fillfactor = 70, toast_tuple_target = 8160);
ALTER TABLE vnf_instances ALTER COLUMN sealed SET STORAGE EXTERNAL;
CREATE INDEX vnf_instances_project ON vnf_instances (project_id, id);
CREATE INDEX vnf_instances_package ON vnf_instances (vnf_pkg_id);
CREATE INDEX vnf_instances_vnfd ON vnf_instances (vnfd_id, id);

CREATE TABLE vnf_lcm_op_occs (
    id                 uuid PRIMARY KEY,
    vnf_instance_id    uuid        NOT NULL,
    project_id         text        NOT NULL,
    vim_id             uuid,
    operation          text        NOT NULL,
    operation_state    text        NOT NULL,
    start_time         timestamptz NOT NULL,
    state_entered_time timestamptz NOT NULL,
    body               json        NOT NULL,
    sealed             bytea       NOT NULL,
    owner              text,
    fence              bigint      NOT NULL DEFAULT 1,
    seq                bigint      NOT NULL DEFAULT 1,
    step               text        NOT NULL DEFAULT '',
    cancel_pending     boolean     NOT NULL DEFAULT false,
    -- In a state that keeps other operations away. A column, so that going from one such state to the next touches no
    -- index.
    active             boolean     NOT NULL DEFAULT true
) WITH (fillfactor = 50, toast_tuple_target = 8160);
ALTER TABLE vnf_lcm_op_occs ALTER COLUMN sealed SET STORAGE EXTERNAL;
-- One LCM operation an instance (SOL003 v2.6.1 §5.6.2).
CREATE UNIQUE INDEX vnf_lcm_op_occs_one_active ON vnf_lcm_op_occs (vnf_instance_id) WHERE active;
CREATE INDEX vnf_lcm_op_occs_instance ON vnf_lcm_op_occs (vnf_instance_id, id);
CREATE INDEX vnf_lcm_op_occs_project ON vnf_lcm_op_occs (project_id, id);

-- The journal: intent before, result after.
CREATE TABLE lcm_op_steps (
    op_occ_id uuid        NOT NULL,
    seq       integer     NOT NULL,
    name      text        NOT NULL,
    tries     integer     NOT NULL DEFAULT 1,
    node      text        NOT NULL,
    fence     bigint      NOT NULL,
    begun_at  timestamptz NOT NULL,
    done_at   timestamptz,
    PRIMARY KEY (op_occ_id, seq)
);

-- The outbox: a state and its notification are one transaction.
CREATE TABLE notifications (
    id              uuid PRIMARY KEY,
    type            text        NOT NULL,
    vnf_instance_id uuid        NOT NULL,
    project_id      text        NOT NULL,
    op_occ_id       uuid,
    seq             bigint      NOT NULL,
    body            json        NOT NULL,
    created_at      timestamptz NOT NULL
);
CREATE UNIQUE INDEX notifications_once ON notifications (op_occ_id, seq) WHERE op_occ_id IS NOT NULL;
CREATE UNIQUE INDEX notifications_identifier_once ON notifications (vnf_instance_id, type) WHERE op_occ_id IS NULL;

-- The values at a path of attribute names, arrays descended into (SOL013 v2.6.1 §5.2).
CREATE FUNCTION attribute_values(doc jsonb, path text[]) RETURNS SETOF text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    WITH RECURSIVE walk(value, depth) AS (
        SELECT doc, 0
        UNION ALL
        SELECT next.value, walk.depth + next.step
        FROM walk
        CROSS JOIN LATERAL (
            SELECT elem AS value, 0 AS step
            FROM jsonb_array_elements(CASE WHEN jsonb_typeof(walk.value) = 'array' THEN walk.value ELSE '[]' END) AS elem
            UNION ALL
            SELECT walk.value -> path[walk.depth + 1], 1
            WHERE jsonb_typeof(walk.value) = 'object' AND walk.depth < cardinality(path)
              AND walk.value ? path[walk.depth + 1]
        ) AS next
    )
    SELECT value #>> '{}' FROM walk
    WHERE depth = cardinality(path) AND jsonb_typeof(value) NOT IN ('object', 'array', 'null')
$$;
