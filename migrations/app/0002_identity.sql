-- Accounts, sessions, organizations, memberships, API keys and preferences.

CREATE TABLE app.users (
    id                  uuid        PRIMARY KEY,
    email               text        NOT NULL,
    name                text        NOT NULL,
    email_verified      boolean     NOT NULL DEFAULT false,
    password_hash       text,
    password_changed_at timestamptz,
    locale              text        CHECK (locale IN ('en', 'de', 'fr')),
    theme               text        NOT NULL DEFAULT 'system' CHECK (theme IN ('light', 'dark', 'system')),
    last_org_id         uuid,
    created_at          timestamptz NOT NULL,
    CONSTRAINT users_email_key UNIQUE (email)
);
COMMENT ON TABLE app.users IS 'One account per e-mail address on the deployment (ACC-1). The address is stored lower-cased.';

CREATE TABLE app.organizations (
    id              uuid        PRIMARY KEY,
    slug            text        NOT NULL,
    name            text        NOT NULL,
    creator_user_id uuid        REFERENCES app.users (id) ON DELETE SET NULL,
    created_at      timestamptz NOT NULL,
    CONSTRAINT organizations_slug_key UNIQUE (slug)
);
CREATE INDEX organizations_by_creator ON app.organizations (creator_user_id);
COMMENT ON TABLE app.organizations IS 'A tenant. The slug never changes after creation (ORG-5).';

ALTER TABLE app.users
    ADD CONSTRAINT users_last_org_id_fkey FOREIGN KEY (last_org_id) REFERENCES app.organizations (id) ON DELETE SET NULL;
CREATE INDEX users_by_last_org ON app.users (last_org_id);

CREATE TABLE app.memberships (
    org_id     uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    user_id    uuid        NOT NULL REFERENCES app.users (id) ON DELETE CASCADE,
    role       text        NOT NULL CHECK (role IN ('owner', 'admin', 'developer', 'editor', 'member', 'disabled')),
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org_id, user_id)
);
CREATE INDEX memberships_by_user ON app.memberships (user_id);
COMMENT ON TABLE app.memberships IS 'The role of a person in an organization, exactly one (ROLE-1).';

CREATE TABLE app.sessions (
    id            uuid        PRIMARY KEY,
    token_hash    bytea       NOT NULL,
    user_id       uuid        NOT NULL REFERENCES app.users (id) ON DELETE CASCADE,
    active_org_id uuid        REFERENCES app.organizations (id) ON DELETE SET NULL,
    method        text        NOT NULL CHECK (method IN ('password')),
    user_agent    text,
    network       text        NOT NULL,
    created_at    timestamptz NOT NULL,
    last_used_at  timestamptz NOT NULL,
    renewed_at    timestamptz NOT NULL,
    expires_at    timestamptz NOT NULL,
    CONSTRAINT sessions_token_hash_key UNIQUE (token_hash)
);
CREATE INDEX sessions_by_user ON app.sessions (user_id);
CREATE INDEX sessions_by_active_org ON app.sessions (active_org_id);
CREATE INDEX sessions_by_expiry ON app.sessions (expires_at);
COMMENT ON TABLE app.sessions IS 'Signed-in browsers. Only the SHA-256 of the cookie''s token is kept (SES-1).';

CREATE TABLE app.login_attempts (
    key_hash      bytea       NOT NULL,
    network       text        NOT NULL,
    failures      integer     NOT NULL CHECK (failures >= 0),
    blocked_until timestamptz,
    last_at       timestamptz NOT NULL,
    PRIMARY KEY (key_hash, network)
);
CREATE INDEX login_attempts_by_age ON app.login_attempts (last_at);
COMMENT ON TABLE app.login_attempts IS 'Consecutive wrong passwords per address and network; the network ''*'' counts all networks together (LCK-11).';

CREATE TABLE app.api_keys (
    id            uuid        PRIMARY KEY,
    user_id       uuid        NOT NULL REFERENCES app.users (id) ON DELETE CASCADE,
    kind          text        NOT NULL CHECK (kind IN ('personal')),
    hash          bytea       NOT NULL,
    first_chars   text        NOT NULL,
    last_chars    text        NOT NULL,
    name          text        NOT NULL,
    scopes        jsonb,
    created_at    timestamptz NOT NULL,
    expires_at    timestamptz,
    revoked_at    timestamptz,
    revoke_reason text,
    last_used_at  timestamptz,
    CONSTRAINT api_keys_hash_key UNIQUE (hash)
);
CREATE INDEX api_keys_by_user ON app.api_keys (user_id, created_at DESC);
COMMENT ON TABLE app.api_keys IS 'API keys of people, valid in every organization of the holder. Only the SHA-256 of the key is kept (KEY-16).';

CREATE TABLE app.preferences (
    org_id                      uuid        NOT NULL,
    user_id                     uuid        NOT NULL,
    custom_instructions_enabled boolean,
    custom_instructions         text        NOT NULL DEFAULT '',
    updated_at                  timestamptz NOT NULL,
    PRIMARY KEY (org_id, user_id),
    FOREIGN KEY (org_id, user_id) REFERENCES app.memberships (org_id, user_id) ON DELETE CASCADE
);
COMMENT ON TABLE app.preferences IS 'What a person set for themselves in one organization; goes with the membership (PREF-7).';
