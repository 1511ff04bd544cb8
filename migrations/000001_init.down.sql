DROP FUNCTION attribute_values(jsonb, text[]);
DROP TABLE notifications, lcm_op_steps, vnf_lcm_op_occs, vnf_instances, vnf_packages, content_chunks, contents, vims, nodes;
DROP SEQUENCE node_lock_key;
