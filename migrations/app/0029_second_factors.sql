-- Second factors: authenticator apps, backup codes, passkeys, and sign-ins that wait for one of them.

CREATE TABLE app.totp_secrets (
    user_id      uuid        PRIMARY KEY REFERENCES app.users (id) ON DELETE CASCADE,
    secret       text        NOT NULL,
    created_at   timestamptz NOT NULL,
    confirmed_at timestamptz,
    last_step    bigint      NOT NULL DEFAULT 0
);
COMMENT ON TABLE app.totp_secrets IS
    'Authenticator apps (RFC 6238), encrypted with the deployment''s key; without confirmed_at one is being set up and grants nothing. No code of last_step or before is accepted again.';

CREATE TABLE app.backup_codes (
    user_id   uuid        NOT NULL REFERENCES app.totp_secrets (user_id) ON DELETE CASCADE,
    code_hash bytea       NOT NULL,
    used_at   timestamptz,
    PRIMARY KEY (user_id, code_hash)
);
COMMENT ON TABLE app.backup_codes IS 'HMAC-SHA-256 of backup codes, under a key that follows from the person''s encrypted secret.';

CREATE TABLE app.passkeys (
    id            uuid        PRIMARY KEY,
    user_id       uuid        NOT NULL REFERENCES app.users (id) ON DELETE CASCADE,
    name          text        NOT NULL CHECK (length(name) BETWEEN 1 AND 64),
    credential_id bytea       NOT NULL,
    -- a COSE key (RFC 9052)
    public_key    bytea       NOT NULL,
    sign_count    bigint      NOT NULL,
    transports    text[]      NOT NULL,
    aaguid        uuid        NOT NULL,
    created_at    timestamptz NOT NULL,
    last_used_at  timestamptz,
    CONSTRAINT passkeys_credential_id_key UNIQUE (credential_id)
);
CREATE INDEX passkeys_by_user ON app.passkeys (user_id, created_at);
COMMENT ON TABLE app.passkeys IS 'Passkeys (WebAuthn) of people, at most 20 each.';

CREATE TABLE app.spent_challenges (
    challenge_hash bytea       PRIMARY KEY,
    expires_at     timestamptz NOT NULL
);
CREATE INDEX spent_challenges_by_expiry ON app.spent_challenges (expires_at);
COMMENT ON TABLE app.spent_challenges IS 'Challenges of passkeys that were answered: none is answered twice.';

CREATE TABLE app.pending_sign_ins (
    id          uuid        PRIMARY KEY,
    token_hash  bytea       NOT NULL,
    user_id     uuid        NOT NULL REFERENCES app.users (id) ON DELETE CASCADE,
    persistent  boolean     NOT NULL,
    created_at  timestamptz NOT NULL,
    expires_at  timestamptz NOT NULL,
    CONSTRAINT pending_sign_ins_token_hash_key UNIQUE (token_hash)
);
CREATE INDEX pending_sign_ins_by_user ON app.pending_sign_ins (user_id);
CREATE INDEX pending_sign_ins_by_expiry ON app.pending_sign_ins (expires_at);
COMMENT ON TABLE app.pending_sign_ins IS
    'Sign-ins whose password was right and whose second factor is open; they grant nothing but an attempt at it.';

ALTER TABLE app.users ADD COLUMN two_factor_grace_until timestamptz;
COMMENT ON COLUMN app.users.two_factor_grace_until IS
    'Until when the person may go without a second factor where a policy wants one; set once (MFA-15).';

ALTER TABLE app.sessions
    DROP CONSTRAINT sessions_method_check,
    ADD CONSTRAINT sessions_method_check CHECK (method IN ('password', 'trusted-headers', 'passkey'));
