DROP FUNCTION fan_out(uuid, text, uuid, text, boolean, json, json);
DROP TABLE deliveries, subscriptions;
