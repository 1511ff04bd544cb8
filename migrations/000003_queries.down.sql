DROP TRIGGER vnf_instances_attributes_insert ON vnf_instances;
DROP TRIGGER vnf_lcm_op_occs_attributes_insert ON vnf_lcm_op_occs;
DROP INDEX vnf_lcm_op_occs_odd_start;
ALTER TABLE vnf_instances DROP COLUMN attributes;
ALTER TABLE vnf_lcm_op_occs DROP COLUMN attributes, DROP COLUMN ended_at;
DROP FUNCTION set_attributes(), attribute_digests(jsonb), attribute_number(text), attribute_time(text),
    id_time(uuid);
CREATE INDEX vnf_instances_vnfd ON vnf_instances (vnfd_id, id);
DROP INDEX vnf_instances_package;
CREATE INDEX vnf_instances_package ON vnf_instances (vnf_pkg_id);
