-- Chats, their messages as a tree, and the turn in flight.
CREATE TABLE app.threads (
    id               uuid        PRIMARY KEY,
    org_id           uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    owner_user_id    uuid        NOT NULL REFERENCES app.users (id) ON DELETE CASCADE,
    title            text        CHECK (char_length(title) BETWEEN 1 AND 120),
    -- a generated title never replaces one that a person wrote
    title_source     text        NOT NULL DEFAULT 'generated' CHECK (title_source IN ('generated', 'custom')),
    reasoning_effort text        CHECK (reasoning_effort IN ('low', 'medium', 'high', 'extra', 'max')),
    -- the last message of the version on screen
    active_leaf      uuid,
    -- the chat this one was forked from
    forked_from      uuid,
    unread           boolean     NOT NULL DEFAULT false,
    pinned_at        timestamptz,
    archived_at      timestamptz,
    trashed_at       timestamptz,
    created_at       timestamptz NOT NULL,
    -- moves on message activity only, never when the chat is archived
    updated_at       timestamptz NOT NULL,
    UNIQUE (org_id, id)
);
COMMENT ON TABLE app.threads IS 'Chats. Private to their owner.';
CREATE INDEX threads_by_owner ON app.threads (org_id, owner_user_id, updated_at DESC, id DESC) WHERE trashed_at IS NULL;
CREATE INDEX threads_owner ON app.threads (owner_user_id);
CREATE INDEX threads_trashed ON app.threads (trashed_at) WHERE trashed_at IS NOT NULL;

CREATE TABLE app.messages (
    id                    uuid        PRIMARY KEY,
    org_id                uuid        NOT NULL,
    thread_id             uuid        NOT NULL,
    -- the message this one follows; messages with the same parent are versions of one turn
    parent_id             uuid        REFERENCES app.messages (id) ON DELETE CASCADE,
    role                  text        NOT NULL CHECK (role IN ('user', 'assistant')),
    status                text        NOT NULL CHECK (status IN ('pending', 'complete', 'cancelled', 'failed')),
    parts                 jsonb       NOT NULL DEFAULT '[]'::jsonb,
    -- the readable text of the parts, for search
    search_text           text        NOT NULL DEFAULT '',
    search_vector         tsvector    GENERATED ALWAYS AS (to_tsvector('simple', left(search_text, 200000))) STORED,
    model                 text,
    provider_slug         text,
    usage                 jsonb,
    error                 text,
    error_code            text,
    finish_reason         text,
    context_dropped_count integer     NOT NULL DEFAULT 0,
    step_limit_hit        boolean     NOT NULL DEFAULT false,
    created_at            timestamptz NOT NULL,
    started_at            timestamptz,
    first_token_at        timestamptz,
    done_at               timestamptz,
    FOREIGN KEY (org_id, thread_id) REFERENCES app.threads (org_id, id) ON DELETE CASCADE
);
COMMENT ON TABLE app.messages IS 'Messages of chats, a tree: every edit and retry adds a branch, nothing is overwritten.';
CREATE INDEX messages_by_thread ON app.messages (org_id, thread_id, created_at);
CREATE INDEX messages_by_parent ON app.messages (parent_id);
CREATE INDEX messages_search ON app.messages USING gin (search_vector);

CREATE TABLE app.generations (
    thread_id        uuid        PRIMARY KEY,
    org_id           uuid        NOT NULL,
    message_id       uuid        NOT NULL REFERENCES app.messages (id) ON DELETE CASCADE,
    -- the process that runs the turn; another one never writes its result
    owner            uuid        NOT NULL,
    status           text        NOT NULL CHECK (status IN ('queued', 'streaming')),
    cancel_requested boolean     NOT NULL DEFAULT false,
    -- what has been streamed so far, at most about a second old
    parts            jsonb       NOT NULL DEFAULT '[]'::jsonb,
    usage            jsonb,
    created_at       timestamptz NOT NULL,
    heartbeat_at     timestamptz NOT NULL,
    FOREIGN KEY (org_id, thread_id) REFERENCES app.threads (org_id, id) ON DELETE CASCADE
);
COMMENT ON TABLE app.generations IS 'The turn in flight of a chat. A missing row is the definition of "settled"; the primary key admits one turn at a time.';
CREATE INDEX generations_by_org ON app.generations (org_id, thread_id);
CREATE INDEX generations_by_message ON app.generations (message_id);
CREATE INDEX generations_by_heartbeat ON app.generations (heartbeat_at);

CREATE TABLE app.message_feedback (
    message_id    uuid        NOT NULL REFERENCES app.messages (id) ON DELETE CASCADE,
    user_id       uuid        NOT NULL REFERENCES app.users (id) ON DELETE CASCADE,
    org_id        uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    rating        text        NOT NULL CHECK (rating IN ('up', 'down')),
    comment       text        CHECK (char_length(comment) <= 2000),
    model         text,
    provider_slug text,
    created_at    timestamptz NOT NULL,
    PRIMARY KEY (message_id, user_id)
);
COMMENT ON TABLE app.message_feedback IS 'Thumbs and comments on replies, one per person and message.';
CREATE INDEX message_feedback_by_user ON app.message_feedback (user_id);
CREATE INDEX message_feedback_by_org ON app.message_feedback (org_id, created_at);

CREATE TABLE app.chat_picks (
    org_id        uuid NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    user_id       uuid NOT NULL REFERENCES app.users (id) ON DELETE CASCADE,
    -- both unset = Auto
    model         text,
    provider_slug text,
    PRIMARY KEY (org_id, user_id)
);
COMMENT ON TABLE app.chat_picks IS 'The model a person used last, for the next fresh chat.';
CREATE INDEX chat_picks_by_user ON app.chat_picks (user_id);
