-- Uploaded files and the library's documents.
CREATE TABLE app.files (
    id                   uuid        PRIMARY KEY,
    org_id               uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    -- [prefix/]{orgSlug}/{uuid} in the object store (FILE-1)
    storage_key          text        NOT NULL UNIQUE,
    -- as the uploader named it, control characters removed
    file_name            text        NOT NULL CHECK (file_name <> ''),
    content_type         text        NOT NULL,
    size                 bigint      NOT NULL CHECK (size >= 0),
    purpose              text        NOT NULL CHECK (purpose IN ('document', 'chat')),
    uploaded_by          uuid        REFERENCES app.users (id) ON DELETE SET NULL,
    -- the chat that holds a chat upload once its message is sent
    thread_id            uuid,
    -- lower-case hex SHA-256, known once the bytes were read
    content_hash         text,
    image_width          integer,
    image_height         integer,
    -- an upload is `slot` until its bytes were checked, then `stored`; `deleting` waits for the purge
    state                text        NOT NULL DEFAULT 'slot' CHECK (state IN ('slot', 'stored', 'deleting')),
    upload_deadline      timestamptz NOT NULL,
    skip_indexing        boolean     NOT NULL DEFAULT false,
    index_status         text        NOT NULL DEFAULT 'pending'
        CHECK (index_status IN ('pending', 'queued', 'running', 'completed', 'failed', 'unsupported')),
    index_error          text,
    index_error_code     text,
    -- passages done and expected; both unset while unknown
    index_done           integer,
    index_total          integer,
    -- whether passages may be found: set once a file was read to its end without a refusal
    searchable           boolean     NOT NULL DEFAULT false,
    -- whether the passages carry vectors of the organization's model
    embedded             boolean     NOT NULL DEFAULT false,
    -- provider/model/width that made the vectors
    embedding_stamp      text,
    text_length          bigint,
    index_queued_at      timestamptz,
    indexed_at           timestamptz,
    status_changed_at    timestamptz NOT NULL,
    created_at           timestamptz NOT NULL,
    UNIQUE (org_id, id)
);
COMMENT ON TABLE app.files IS 'Uploaded bytes in the object store, what holds them and how far they are indexed.';

CREATE INDEX files_by_uploader ON app.files (uploaded_by);
CREATE INDEX files_by_thread ON app.files (org_id, thread_id) WHERE thread_id IS NOT NULL;
CREATE INDEX files_by_index_status ON app.files (index_status, status_changed_at)
    WHERE index_status IN ('queued', 'running', 'failed');
CREATE INDEX files_unattached ON app.files (upload_deadline) WHERE state IN ('slot', 'deleting') OR purpose = 'chat';

CREATE TABLE app.documents (
    id                   uuid        PRIMARY KEY,
    org_id               uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    title                text        NOT NULL CHECK (title <> ''),
    -- either stored bytes or inline text
    file_id              uuid        UNIQUE,
    content              text,
    mime_type            text        NOT NULL,
    extension            text        NOT NULL DEFAULT '',
    source_provider      text        NOT NULL CHECK (source_provider IN ('upload', 'api')),
    lifecycle            text        NOT NULL DEFAULT 'active' CHECK (lifecycle IN ('active', 'trashed', 'purging')),
    trashed_at           timestamptz,
    created_by           uuid        REFERENCES app.users (id) ON DELETE SET NULL,
    created_at           timestamptz NOT NULL,
    updated_at           timestamptz NOT NULL,
    CHECK ((file_id IS NULL) <> (content IS NULL)),
    CHECK ((lifecycle = 'active') = (trashed_at IS NULL)),
    FOREIGN KEY (org_id, file_id) REFERENCES app.files (org_id, id) ON DELETE RESTRICT
);
COMMENT ON TABLE app.documents IS 'The library: a titled file or inline text of an organization.';

CREATE INDEX documents_newest ON app.documents (org_id, created_at DESC, id DESC) WHERE lifecycle = 'active';
CREATE INDEX documents_by_file ON app.documents (org_id, file_id);
CREATE INDEX documents_by_creator ON app.documents (created_by);
CREATE INDEX documents_trashed ON app.documents (trashed_at) WHERE lifecycle <> 'active';
