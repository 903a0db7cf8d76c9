-- Links to snapshots of chats, for the members of the chat's organization.
CREATE TABLE app.thread_shares (
    org_id    uuid        NOT NULL,
    thread_id uuid        NOT NULL,
    -- 256 random bits. Readable, because its owner copies the link again later; it opens nothing without a membership
    token     text        NOT NULL,
    -- the chat's title when the snapshot was taken
    title     text,
    -- the last message of the snapshot. Settled messages are never overwritten, so the path to it is the snapshot
    leaf_id   uuid        NOT NULL REFERENCES app.messages (id) ON DELETE CASCADE,
    -- when the link was made
    shared_at timestamptz NOT NULL,
    -- when the snapshot was taken, last
    taken_at  timestamptz NOT NULL,
    PRIMARY KEY (org_id, thread_id),
    UNIQUE (org_id, token),
    FOREIGN KEY (org_id, thread_id) REFERENCES app.threads (org_id, id) ON DELETE CASCADE
);
COMMENT ON TABLE app.thread_shares IS 'The live share link of a chat. A link that was stopped has no row, so it can never come back.';
CREATE INDEX thread_shares_by_leaf ON app.thread_shares (leaf_id);
