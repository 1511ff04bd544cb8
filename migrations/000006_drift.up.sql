-- What was last seen of each instance beside what is recorded of it: a line for an instance that has been looked at.
CREATE TABLE verifications (
    vnf_instance_id  uuid PRIMARY KEY,
    tried_at         timestamptz NOT NULL,           -- the last look, whether or not it came to something
    problem          text,                           -- why it did not
    verified_at      timestamptz,                    -- the last look that did; what follows is of that one
    instance_version bigint      NOT NULL,
    vim_id           uuid,
    differs_since    timestamptz,
    differences      json        NOT NULL DEFAULT '[]'
);
CREATE INDEX verifications_differ ON verifications (vim_id) WHERE differs_since IS NOT NULL;
CREATE INDEX verifications_tried ON verifications (tried_at);
-- What can be verified, VIM by VIM. An update that changes what stands here (INSTANTIATE, TERMINATE) changes the instance's
-- attributes, which have an index, as well: no update that touches no index now touches one by this.
CREATE INDEX vnf_instances_vim ON vnf_instances (vim_id, id) WHERE instantiation_state = 'INSTANTIATED';
