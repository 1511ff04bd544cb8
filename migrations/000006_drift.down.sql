DROP INDEX vnf_instances_vim;
DROP TABLE verifications;
