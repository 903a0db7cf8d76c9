-- Provisioning by a directory (SCIM 2.0).

CREATE TABLE app.scim_settings (
    org_id        uuid        PRIMARY KEY REFERENCES app.organizations (id) ON DELETE CASCADE,
    enabled       boolean     NOT NULL,
    token_hash    bytea,
    -- the first characters of the token
    first_chars   text,
    token_made_at timestamptz,
    last_used_at  timestamptz,
    CONSTRAINT scim_settings_token_key UNIQUE (token_hash)
);
COMMENT ON TABLE app.scim_settings IS
    'Whether a directory provisions the organization, and the SHA-256 of its token (SCIM-1); no row = it does not.';

CREATE TABLE app.scim_users (
    org_id        uuid        NOT NULL,
    user_id       uuid        NOT NULL,
    user_name     text        NOT NULL,
    -- as it is compared: lower-cased
    user_name_key text        NOT NULL,
    external_id   text,
    -- name, displayName, title and emails as the directory wrote them
    attributes    jsonb       NOT NULL,
    -- the role that comes back when the member is active again (SCIM-4)
    previous_role text        CHECK (previous_role IN ('member', 'editor', 'developer', 'admin')),
    updated_at    timestamptz NOT NULL,
    PRIMARY KEY (org_id, user_id),
    CONSTRAINT scim_users_name_key UNIQUE (org_id, user_name_key),
    FOREIGN KEY (org_id, user_id) REFERENCES app.memberships (org_id, user_id) ON DELETE CASCADE
);
CREATE INDEX scim_users_by_external_id ON app.scim_users (org_id, external_id) WHERE external_id IS NOT NULL;
COMMENT ON TABLE app.scim_users IS 'What a directory says about a member; goes with the membership.';

ALTER TABLE app.teams ADD COLUMN external_id text;
COMMENT ON COLUMN app.teams.external_id IS 'What the directory calls the team.';
