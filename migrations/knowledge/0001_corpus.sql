-- The corpus: the passages of indexed files. What a person may see is decided by the app database,
-- never by these rows (KB-14); they can be rebuilt from the stored files at any time.
CREATE SCHEMA IF NOT EXISTS private_knowledge;

CREATE TABLE private_knowledge.documents (
    org_id            uuid        NOT NULL,
    file_id           uuid        NOT NULL,
    title             text        NOT NULL,
    -- false for a chat upload, which only searches of its own chat may read
    library           boolean     NOT NULL,
    -- a file is refused as a whole, even for its last page: passages of a document that is not
    -- completed must not be searchable
    status            text        NOT NULL CHECK (status IN ('processing', 'completed', 'failed')),
    -- a run's identity: a file whose bytes or chunker changed is chunked anew
    content_hash      text,
    chunker_version   integer     NOT NULL,
    chunks_count      integer     NOT NULL DEFAULT 0,
    -- length of the extracted text in Unicode scalar values, set on completion
    text_length       bigint      NOT NULL DEFAULT 0,
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (org_id, file_id)
);
COMMENT ON TABLE private_knowledge.documents IS 'One indexed file of an organization and how far its passages are stored.';

CREATE TABLE private_knowledge.chunks (
    id                uuid        PRIMARY KEY,
    org_id            uuid        NOT NULL,
    file_id           uuid        NOT NULL,
    ordinal           integer     NOT NULL,
    -- copied from the file so that a candidate pool is not filled with other chats' uploads
    library           boolean     NOT NULL,
    -- title and enclosing headings, empty when there are none
    header            text        NOT NULL,
    -- the passage, trimmed; it may begin with an overlap of the passage before it
    body              text        NOT NULL,
    -- offsets into the extracted text in Unicode scalar values, end exclusive
    body_start        bigint      NOT NULL,
    body_end          bigint      NOT NULL,
    -- the part that belongs to this passage alone; the cores of a file join to its whole text
    core_start        bigint      NOT NULL,
    core_end          bigint      NOT NULL,
    -- white space of the core that trimming took from the body, before and after it
    core_head         text        NOT NULL DEFAULT '',
    core_tail         text        NOT NULL DEFAULT '',
    page              integer,
    chunker_version   integer     NOT NULL,
    -- any width; the corpus' one width stands in corpus_settings (EMB-3)
    embedding         vector,
    -- provider/model that made the vector; vectors of another model stay out of the dense leg (EMB-5)
    embedding_model   text,
    CHECK (body_start < body_end),
    CHECK (core_start < core_end),
    CHECK ((embedding IS NULL) = (embedding_model IS NULL)),
    UNIQUE (org_id, file_id, ordinal),
    FOREIGN KEY (org_id, file_id) REFERENCES private_knowledge.documents (org_id, file_id) ON DELETE CASCADE
);
COMMENT ON TABLE private_knowledge.chunks IS 'Passages of indexed files, with their vectors once embedded.';

-- finds the passages that still wait for a vector of a file
CREATE INDEX chunks_unembedded ON private_knowledge.chunks (org_id, file_id, ordinal) WHERE embedding IS NULL;

CREATE TABLE private_knowledge.corpus_settings (
    singleton         boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    -- the one vector width of this database, fixed by the first embedding
    dimensions        integer     NOT NULL CHECK (dimensions > 0),
    pinned_at         timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE private_knowledge.corpus_settings IS 'What holds for the whole corpus database, across organizations.';
