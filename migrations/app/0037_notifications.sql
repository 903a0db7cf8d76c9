-- What people are told.

CREATE TABLE app.notifications (
    id         uuid        PRIMARY KEY,
    -- empty when it is about the account, whichever organization is open
    org_id     uuid        REFERENCES app.organizations (id) ON DELETE CASCADE,
    user_id    uuid        NOT NULL REFERENCES app.users (id) ON DELETE CASCADE,
    kind       text        NOT NULL,
    details    jsonb       NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL,
    read_at    timestamptz
);
COMMENT ON TABLE app.notifications IS 'What a person is told. Its words are made from kind and details in the language of whoever reads.';
CREATE INDEX notifications_of_person ON app.notifications (user_id, created_at DESC, id DESC);
CREATE INDEX notifications_unread ON app.notifications (user_id, created_at DESC, id DESC) WHERE read_at IS NULL;
CREATE INDEX notifications_of_organization ON app.notifications (org_id);
CREATE INDEX notifications_by_age ON app.notifications (created_at);

ALTER TABLE app.users
    ADD COLUMN muted_notices text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN app.users.muted_notices IS 'Kinds of notifications that the person declined.';

CREATE TABLE app.known_devices (
    user_id  uuid        NOT NULL REFERENCES app.users (id) ON DELETE CASCADE,
    -- SHA-256 of browser, system and network
    device   bytea       NOT NULL CHECK (octet_length(device) = 32),
    used_at  timestamptz NOT NULL,
    PRIMARY KEY (user_id, device)
);
COMMENT ON TABLE app.known_devices IS 'What a person signed in from before, so that a sign-in from elsewhere is told.';
CREATE INDEX known_devices_by_age ON app.known_devices (used_at);
