-- What an organization's administrators lay down, one document per key.

CREATE TABLE app.policies (
    org_id     uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    key        text        NOT NULL CHECK (key ~ '^[a-z][a-z_]{0,62}$'),
    value      jsonb       NOT NULL,
    version    bigint      NOT NULL CHECK (version > 0),
    -- Who wrote it last; NULL = a file that an operator wrote, or the platform.
    updated_by uuid,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org_id, key)
);
COMMENT ON TABLE app.policies IS
    'Policies of organizations (POL-1); no row = the defaults. Each write raises the version and stands in the audit log.';
