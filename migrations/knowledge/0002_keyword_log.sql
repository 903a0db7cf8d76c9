-- What the in-process keyword indexes must look at again (SRCH-5). An entry names passages, it does
-- not carry them: a follower re-reads their current rows, so applying an entry twice changes nothing.
CREATE TABLE private_knowledge.keyword_log (
    org_id            uuid        NOT NULL,
    -- the writing transaction: a follower remembers a snapshot and asks for what that snapshot did
    -- not see, so a transaction that started early and committed late is never passed over
    xid               xid8        NOT NULL DEFAULT pg_current_xact_id(),
    seq               bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    file_id           uuid        NOT NULL,
    -- passages that were added or changed, both ends included; unset: the whole file
    first_ordinal     integer,
    last_ordinal      integer,
    logged_at         timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, xid, seq),
    CHECK ((first_ordinal IS NULL) = (last_ordinal IS NULL)),
    CHECK (first_ordinal <= last_ordinal)
);
COMMENT ON TABLE private_knowledge.keyword_log IS 'Changes of passages that keyword indexes follow, kept for some days.';

CREATE INDEX keyword_log_by_age ON private_knowledge.keyword_log (logged_at);

CREATE TABLE private_knowledge.keyword_log_floor (
    org_id            uuid        PRIMARY KEY,
    -- entries of this transaction and older ones may be gone; a follower that needs them rebuilds
    trimmed_through   xid8        NOT NULL
);
COMMENT ON TABLE private_knowledge.keyword_log_floor IS 'How far the keyword log of an organization has been trimmed.';
