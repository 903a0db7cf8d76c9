-- Mail about notifications.

CREATE TABLE app.mail_delivery (
    only_row boolean     PRIMARY KEY DEFAULT true CHECK (only_row),
    since    timestamptz NOT NULL
);
COMMENT ON TABLE app.mail_delivery IS
    'Has a row while the workers of the deployment have a mail server. Whoever writes a notification asks it whether mail is due.';

ALTER TABLE app.users
    ADD COLUMN unmailed_notices text[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN app.users.unmailed_notices IS 'Kinds of notifications that the person wants no mail about.';

CREATE TABLE app.notice_mails (
    -- stands in Message-ID, so that a mail that is sent again can be recognized
    id         uuid        PRIMARY KEY,
    -- empty when it is about the account
    org_id     uuid        REFERENCES app.organizations (id) ON DELETE CASCADE,
    user_id    uuid        NOT NULL REFERENCES app.users (id) ON DELETE CASCADE,
    state      text        NOT NULL CHECK (state IN ('open', 'sent', 'dropped', 'failed')),
    -- why it was dropped or failed: a stable code, and what the mail server said
    reason     text,
    created_at timestamptz NOT NULL,
    settled_at timestamptz,
    CONSTRAINT notice_mails_settled CHECK ((state = 'open') = (settled_at IS NULL))
);
COMMENT ON TABLE app.notice_mails IS
    'Mails about notifications. open: the mail server has not taken it yet; dropped: too old, or its reader may not read it any more; failed: refused for good.';
CREATE UNIQUE INDEX notice_mails_one_open
    ON app.notice_mails (user_id, coalesce(org_id, '00000000-0000-0000-0000-000000000000'::uuid)) WHERE state = 'open';
CREATE INDEX notice_mails_of_person ON app.notice_mails (user_id, settled_at);
CREATE INDEX notice_mails_of_organization ON app.notice_mails (org_id);
CREATE INDEX notice_mails_by_age ON app.notice_mails (created_at);

ALTER TABLE app.notifications
    -- no mail about it has been begun, and one is due
    ADD COLUMN mail_due boolean NOT NULL DEFAULT false,
    ADD COLUMN mail_id  uuid REFERENCES app.notice_mails (id) ON DELETE SET NULL;
CREATE INDEX notifications_due_by_mail ON app.notifications (user_id, created_at) WHERE mail_due;
CREATE INDEX notifications_of_mail ON app.notifications (mail_id);
