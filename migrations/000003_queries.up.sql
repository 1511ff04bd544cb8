-- What the filters of lists (SOL013 v2.6.1 §5.2) find rows by. The digests of a body's attributes stand in one array under
-- one GIN index: any attribute at any depth, and the planner knows which values are common. Letters A to Z compare without
-- case, on every database alike.

-- The digests of what a body holds: of every value that can be compared, with its path, and of every name beneath the maps
-- whose names are the caller's own; arrays are descended into. Not of what has an index of its own. "~" keeps names from
-- being taken for paths. The program makes the same (internal/store/digest.go) and
-- writes them with the body; this is for the rows that are there already and for those that programs which do not know the
-- column insert. There is no trigger on updates: it would read every old row again.
CREATE FUNCTION attribute_digests(doc jsonb) RETURNS bigint[] LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    digests bigint[] := '{}';
    paths   text[]   := ARRAY[''];
    open    jsonb[]  := ARRAY[doc];
    at      integer  := 1;
    path    text;
    named   boolean;
    name    text;
    value   jsonb;
BEGIN
    WHILE at <= cardinality(open) LOOP
        path := paths[at];
        IF jsonb_typeof(open[at]) = 'array' THEN
            FOR value IN SELECT e FROM jsonb_array_elements(open[at]) AS e LOOP
                CASE jsonb_typeof(value)
                    WHEN 'string'  THEN digests := digests || hashtextextended(path || '=' || lower((value #>> '{}') COLLATE "C"), 0);
                    WHEN 'number'  THEN digests := digests || hashtextextended(path || ':' || trim_scale(value::numeric), 0);
                    WHEN 'boolean' THEN digests := digests || hashtextextended(path || '=' || (value #>> '{}'), 0);
                    WHEN 'null'    THEN NULL;
                    ELSE
                        paths := paths || path;
                        open := open || value;
                END CASE;
            END LOOP;
        ELSE
            named := path ~ '^/(metadata|extensions|vnfConfigurableProperties|operationParams)(/|$)';
            FOR name, value IN SELECT m.key, m.value FROM jsonb_each(open[at]) AS m LOOP
                IF name ~ '[~/=:]' THEN
                    name := replace(replace(replace(replace(name, '~', '~0'), '/', '~1'), '=', '~2'), ':', '~3');
                END IF;
                CONTINUE WHEN at = 1 AND name IN ('id', 'vnfPkgId', 'vnfInstanceId', 'startTime', 'stateEnteredTime');
                IF named THEN
                    digests := digests || hashtextextended('#' || path || '/' || lower(name COLLATE "C"), 0);
                END IF;
                name := path || '/' || name;
                CASE jsonb_typeof(value)
                    WHEN 'string'  THEN digests := digests || hashtextextended(name || '=' || lower((value #>> '{}') COLLATE "C"), 0);
                    WHEN 'number'  THEN digests := digests || hashtextextended(name || ':' || trim_scale(value::numeric), 0);
                    WHEN 'boolean' THEN digests := digests || hashtextextended(name || '=' || (value #>> '{}'), 0);
                    WHEN 'null'    THEN NULL;
                    ELSE
                        paths := paths || name;
                        open := open || value;
                END CASE;
            END LOOP;
        END IF;
        at := at + 1;
    END LOOP;
    RETURN digests;
END
$$;

CREATE FUNCTION set_attributes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.attributes := attribute_digests(NEW.body::jsonb);
    RETURN NEW;
END
$$;

-- A text as what it orders by, NULL when it is not one: a number, and a time by RFC 3339. Never an error.
CREATE FUNCTION attribute_number(v text) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT CASE WHEN v ~ '^-?[0-9]{1,200}(\.[0-9]{1,200})?([eE][+-]?[0-9]{1,3})?$' THEN v::numeric END
$$;
CREATE FUNCTION attribute_time(v text) RETURNS timestamptz LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL RESTRICTED AS $$
BEGIN
    IF v !~ '^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})$' THEN
        RETURN NULL;
    END IF;
    RETURN v::timestamptz;
EXCEPTION WHEN data_exception THEN
    RETURN NULL;
END
$$;

-- The moment that a UUID of version 7 names.
CREATE FUNCTION id_time(id uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT to_timestamp(('x' || left(translate(id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
$$;

-- Instances are written a few times in their lives. The index by vnfdId is among the digests.
ALTER TABLE vnf_instances ADD COLUMN attributes bigint[];
UPDATE vnf_instances SET attributes = attribute_digests(body::jsonb);
CREATE TRIGGER vnf_instances_attributes_insert BEFORE INSERT ON vnf_instances FOR EACH ROW
    WHEN (NEW.attributes IS NULL) EXECUTE FUNCTION set_attributes();
ALTER TABLE vnf_instances ALTER COLUMN attributes SET STATISTICS 1000; -- of what is rare, too, the planner must know that
CREATE INDEX vnf_instances_attributes ON vnf_instances USING gin (attributes) WITH (gin_pending_list_limit = 1024);
DROP INDEX vnf_instances_vnfd;

-- Op occs are written with every step. What their indexes hold keeps a row out as long as the op occ is active: that
-- changes in the one update that leaves every index behind anyway. The active ones, at most one an instance, are found
-- by the index that makes them one.
ALTER TABLE vnf_lcm_op_occs
    ADD COLUMN ended_at timestamptz GENERATED ALWAYS AS (CASE WHEN active THEN NULL ELSE state_entered_time END) STORED,
    ADD COLUMN attributes bigint[];
UPDATE vnf_lcm_op_occs SET attributes = attribute_digests(body::jsonb) WHERE NOT active;
CREATE TRIGGER vnf_lcm_op_occs_attributes_insert BEFORE INSERT ON vnf_lcm_op_occs FOR EACH ROW
    WHEN (NOT NEW.active AND NEW.attributes IS NULL) EXECUTE FUNCTION set_attributes();
ALTER TABLE vnf_lcm_op_occs ALTER COLUMN attributes SET STATISTICS 400;
CREATE INDEX vnf_lcm_op_occs_attributes ON vnf_lcm_op_occs USING gin (attributes) WITH (gin_pending_list_limit = 1024) WHERE NOT active;
-- Times are found by id, which tells when an op occ was made, within margins; here are those beyond them, a few.
CREATE INDEX vnf_lcm_op_occs_odd_start ON vnf_lcm_op_occs (start_time)
    WHERE NOT active AND abs(date_part('epoch', start_time - id_time(id))) > 2;
CREATE INDEX vnf_lcm_op_occs_odd_end ON vnf_lcm_op_occs (ended_at)
    WHERE NOT active AND ended_at - start_time NOT BETWEEN interval '0' AND interval '10 minutes';

-- Instances of one package are read in the order of ids.
DROP INDEX vnf_instances_package;
CREATE INDEX vnf_instances_package ON vnf_instances (vnf_pkg_id, id);
