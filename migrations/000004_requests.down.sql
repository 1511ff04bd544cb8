DROP TABLE idempotency_keys, audit_events;
