-- Sign-in by headers of a reverse proxy: its keys and its limits, per organization.

CREATE TABLE app.trusted_header_settings (
    org_id     uuid        PRIMARY KEY REFERENCES app.organizations (id) ON DELETE CASCADE,
    enabled    boolean     NOT NULL,
    max_role   text        NOT NULL CHECK (max_role IN ('member', 'editor', 'developer', 'admin')),
    updated_at timestamptz NOT NULL
);
COMMENT ON TABLE app.trusted_header_settings IS
    'Whether a proxy may sign people in, and the highest role it may assert; no row = it may not.';

CREATE TABLE app.trusted_header_keys (
    id           uuid        PRIMARY KEY,
    org_id       uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    name         text        NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
    hash         bytea       NOT NULL,
    -- the first characters of the key
    prefix       text        NOT NULL,
    created_by   uuid        REFERENCES app.users (id) ON DELETE SET NULL,
    created_at   timestamptz NOT NULL,
    last_used_at timestamptz,
    revoked_at   timestamptz,
    CONSTRAINT trusted_header_keys_hash_key UNIQUE (hash)
);
CREATE INDEX trusted_header_keys_by_org ON app.trusted_header_keys (org_id, created_at DESC);
CREATE INDEX trusted_header_keys_by_maker ON app.trusted_header_keys (created_by);
COMMENT ON TABLE app.trusted_header_keys IS
    'Keys of reverse proxies. Only the SHA-256 of a key is kept, also after its revocation, so that its use is told from that of an unknown one in the log.';

ALTER TABLE app.sessions
    DROP CONSTRAINT sessions_method_check,
    ADD CONSTRAINT sessions_method_check CHECK (method IN ('password', 'trusted-headers'));
