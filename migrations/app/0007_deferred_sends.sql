-- Messages that wait for their attachments (CHT-54 … CHT-58).
CREATE TABLE app.deferred_sends (
    id              uuid        PRIMARY KEY,
    org_id          uuid        NOT NULL,
    thread_id       uuid        NOT NULL,
    user_id         uuid        NOT NULL REFERENCES app.users (id) ON DELETE CASCADE,
    -- the order within a chat
    position        bigint      GENERATED ALWAYS AS IDENTITY,
    -- `sending` is the transaction that stores the message and sets `sent`; nobody ever sees it
    state           text        NOT NULL CHECK (state IN ('waiting', 'held', 'refused', 'sent', 'cancelled')),
    -- words and attachments are forgotten with `sent` and `cancelled`
    content         text        NOT NULL,
    attachments     uuid[]      NOT NULL,
    -- unset = Auto
    model           text,
    provider_slug   text,
    effort          text        CHECK (effort IN ('low', 'medium', 'high', 'extra', 'max')),
    locale          text,
    -- whether the chat was made for this message
    opened_thread   boolean     NOT NULL,
    -- why it was refused
    refusal_code    text,
    refusal         text,
    -- the next look at a waiting message; a process that looks moves it on first
    due_at          timestamptz NOT NULL,
    -- looks in a row that failed on our side
    failures        integer     NOT NULL DEFAULT 0,
    created_at      timestamptz NOT NULL,
    changed_at      timestamptz NOT NULL,
    FOREIGN KEY (org_id, thread_id) REFERENCES app.threads (org_id, id) ON DELETE CASCADE
);
COMMENT ON TABLE app.deferred_sends IS 'Messages parked until their attachments have been read, in order per chat.';
CREATE INDEX deferred_sends_by_thread ON app.deferred_sends (org_id, thread_id, position);
CREATE INDEX deferred_sends_by_user ON app.deferred_sends (user_id);
CREATE INDEX deferred_sends_due ON app.deferred_sends (due_at) WHERE state = 'waiting';
CREATE INDEX deferred_sends_over ON app.deferred_sends (changed_at) WHERE state IN ('sent', 'cancelled');

-- Whether a restart or a lost process cut the reply: its error code alone would blame the provider (CHT-78).
ALTER TABLE app.messages ADD COLUMN interrupted boolean NOT NULL DEFAULT false;
