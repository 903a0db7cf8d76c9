-- Signed assertions of reverse proxies: keys that take nothing else, and the assertions that were used.

ALTER TABLE app.trusted_header_keys
    ADD COLUMN signed_only boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN app.trusted_header_keys.signed_only IS
    'Whether the key signs people in only with a signed assertion beside it, never by plain headers.';

CREATE TABLE app.trusted_header_nonces (
    key_id     uuid        NOT NULL REFERENCES app.trusted_header_keys (id) ON DELETE CASCADE,
    -- SHA-256 of the assertion's id
    nonce      bytea       NOT NULL,
    org_id     uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    -- when the assertion ends by itself
    expires_at timestamptz NOT NULL,
    PRIMARY KEY (key_id, nonce)
);
CREATE INDEX trusted_header_nonces_by_org ON app.trusted_header_nonces (org_id);
CREATE INDEX trusted_header_nonces_by_end ON app.trusted_header_nonces (expires_at);
COMMENT ON TABLE app.trusted_header_nonces IS
    'Assertions that signed somebody in and are not over yet: each counts once, in whatever process.';
