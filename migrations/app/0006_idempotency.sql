-- Remembered answers of idempotent calls (API-70 … API-72).
CREATE TABLE app.idempotency_keys (
    org_id       uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    -- what the key counts within: a chat, an automation
    scope        text        NOT NULL,
    key          text        NOT NULL,
    -- SHA-256 of the canonical body
    body_hash    bytea       NOT NULL,
    answer       jsonb       NOT NULL,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (org_id, scope, key)
);
COMMENT ON TABLE app.idempotency_keys IS 'Answers of calls that carried an Idempotency-Key, kept for 24 hours.';
CREATE INDEX idempotency_keys_by_age ON app.idempotency_keys (created_at);
