-- Who is told of what (SOL003 v2.6.1 §5.5.2.15-16). The filter stands in the body as it is answered, and taken apart in
-- columns for the statements that insert notifications: NULL is an attribute that is absent and matches everything.
CREATE TABLE subscriptions (
    id                 uuid PRIMARY KEY,
    project_id         text        NOT NULL,
    -- Made by an administrator: told of every project's instances.
    all_projects       boolean     NOT NULL,
    callback_uri       text        NOT NULL,
    digest             bytea       NOT NULL,
    notification_types text[],
    operation_types    text[],
    operation_states   text[],
    vnfd_ids           text[],
    instance_ids       text[],
    instance_names     text[],
    -- Any of these objects, each of which an instance's attributes must contain.
    products           jsonb,
    body               json        NOT NULL,
    sealed             bytea,
    version            bigint      NOT NULL DEFAULT 1,
    created_at         timestamptz NOT NULL,
    CONSTRAINT subscriptions_once UNIQUE (project_id, all_projects, callback_uri, digest)
);
CREATE INDEX subscriptions_project ON subscriptions (project_id, id);

-- What each subscription has still to be told, in the order of seq for one instance. Only the first line of an instance
-- is tried; next_at says when, NULL at once. No foreign keys: their row locks would make every operation write to the
-- subscription's row; lines of subscriptions that are gone are swept away.
CREATE TABLE deliveries (
    seq             bigint GENERATED ALWAYS AS IDENTITY,
    subscription_id uuid    NOT NULL,
    vnf_instance_id uuid    NOT NULL,
    notification_id uuid    NOT NULL,
    attempts        integer NOT NULL DEFAULT 0,
    next_at         timestamptz,
    PRIMARY KEY (subscription_id, seq)
) WITH (fillfactor = 90, autovacuum_vacuum_threshold = 2000, autovacuum_vacuum_scale_factor = 0.05);

-- Gives each subscription that matches a line for a notification that the calling statement has inserted, and returns their
-- ids between commas, NULL for none. Every attribute of a filter that is there must match (SOL003 v2.6.1 §5.5.3.12). vnf
-- is the instance's body where the table does not hold it for this statement. A function, so that the statements of
-- operations are planned without it; they call it only when somebody has subscribed.
CREATE FUNCTION fan_out(notification uuid, kind text, instance uuid, project text, of_op_occ boolean, note json, vnf json)
RETURNS text LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    told text;
BEGIN
    WITH fanned AS (
        INSERT INTO deliveries (subscription_id, vnf_instance_id, notification_id)
        SELECT s.id, instance, notification
        FROM subscriptions s
        CROSS JOIN LATERAL (SELECT coalesce(vnf, (SELECT v.body FROM vnf_instances v WHERE v.id = instance)) AS body) AS i
        WHERE (s.all_projects OR s.project_id = project)
        AND (s.notification_types IS NULL OR kind = ANY (s.notification_types))
        AND (s.operation_types IS NULL OR NOT of_op_occ OR note ->> 'operation' = ANY (s.operation_types))
        AND (s.operation_states IS NULL OR NOT of_op_occ OR note ->> 'operationState' = ANY (s.operation_states))
        AND (s.instance_ids IS NULL OR instance::text = ANY (s.instance_ids))
        AND (s.vnfd_ids IS NULL OR i.body ->> 'vnfdId' = ANY (s.vnfd_ids))
        AND (s.instance_names IS NULL OR i.body ->> 'vnfInstanceName' = ANY (s.instance_names))
        AND (s.products IS NULL OR EXISTS (
            SELECT 1 FROM jsonb_array_elements(s.products) AS p WHERE jsonb_build_object(
                'vnfProvider', i.body ->> 'vnfProvider', 'vnfProductName', i.body ->> 'vnfProductName',
                'vnfSoftwareVersion', i.body ->> 'vnfSoftwareVersion', 'vnfdVersion', i.body ->> 'vnfdVersion') @> p))
        RETURNING subscription_id)
    SELECT string_agg(subscription_id::text, ',') INTO told FROM fanned;
    RETURN told;
END
$$;
