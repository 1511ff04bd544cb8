-- A request to cancel (SOL003 v2.6.1 §5.4.17) that whoever runs the operation has not answered yet; the package that a
-- modification is to give the instance, which must not go meanwhile.
ALTER TABLE vnf_lcm_op_occs ADD COLUMN cancel_mode text, ADD COLUMN vnf_pkg_id uuid;
UPDATE vnf_lcm_op_occs SET cancel_mode = 'GRACEFUL' WHERE cancel_pending;
ALTER TABLE vnf_lcm_op_occs DROP COLUMN cancel_pending;
CREATE INDEX vnf_lcm_op_occs_canceled ON vnf_lcm_op_occs (id) WHERE cancel_mode IS NOT NULL;
CREATE INDEX vnf_lcm_op_occs_package ON vnf_lcm_op_occs (vnf_pkg_id) WHERE vnf_pkg_id IS NOT NULL AND active;
