-- Enterprise SSO: the connection of an organization with its identity provider, and who is who there.

CREATE TABLE app.sso_connections (
    org_id       uuid        PRIMARY KEY REFERENCES app.organizations (id) ON DELETE CASCADE,
    -- another one for each connection, so that a sign-in under way never ends in its successor
    id           uuid        NOT NULL,
    protocol     text        NOT NULL CHECK (protocol IN ('oidc', 'entra', 'saml')),
    display_name text        NOT NULL CHECK (length(display_name) BETWEEN 1 AND 100),
    enabled      boolean     NOT NULL,
    default_role text        NOT NULL CHECK (default_role IN ('member', 'editor', 'developer', 'admin')),
    -- lower-cased domains of the addresses that sign in here; none = any
    domains      text[]      NOT NULL,
    config       jsonb       NOT NULL,
    secret       text,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    CONSTRAINT sso_connections_id_key UNIQUE (id)
);
COMMENT ON TABLE app.sso_connections IS
    'How people of an organization sign in at its identity provider (SSO-1). The secret is encrypted with the deployment''s key.';

CREATE TABLE app.external_identities (
    org_id     uuid        NOT NULL,
    source     text        NOT NULL CHECK (source IN ('sso', 'scim')),
    -- the identity provider that the subject is a name of; empty where there is only one
    issuer     text        NOT NULL,
    subject    text        NOT NULL,
    user_id    uuid        NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org_id, source, issuer, subject),
    CONSTRAINT external_identities_one_per_person UNIQUE (org_id, source, issuer, user_id),
    FOREIGN KEY (org_id, user_id) REFERENCES app.memberships (org_id, user_id) ON DELETE CASCADE
);
CREATE INDEX external_identities_by_member ON app.external_identities (org_id, user_id);
COMMENT ON TABLE app.external_identities IS
    'Who a member is to an identity provider or a directory, fixed at first use (SSO-17); goes with the membership.';

ALTER TABLE app.teams
    ADD COLUMN source text NOT NULL DEFAULT 'manual' CHECK (source IN ('manual', 'sso', 'scim', 'proxy'));
ALTER TABLE app.team_members
    ADD COLUMN source text NOT NULL DEFAULT 'manual' CHECK (source IN ('manual', 'sso', 'scim', 'proxy'));
COMMENT ON COLUMN app.team_members.source IS 'Who put the person there; a synchronization takes away only what it gave (SSO-20).';

ALTER TABLE app.sessions
    DROP CONSTRAINT sessions_method_check,
    ADD CONSTRAINT sessions_method_check CHECK (method IN ('password', 'trusted-headers', 'passkey', 'sso'));
