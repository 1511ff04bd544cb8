DROP INDEX vnf_lcm_op_occs_package;
DROP INDEX vnf_lcm_op_occs_canceled;
ALTER TABLE vnf_lcm_op_occs ADD COLUMN cancel_pending boolean NOT NULL DEFAULT false;
UPDATE vnf_lcm_op_occs SET cancel_pending = true WHERE cancel_mode IS NOT NULL;
ALTER TABLE vnf_lcm_op_occs DROP COLUMN vnf_pkg_id, DROP COLUMN cancel_mode;
