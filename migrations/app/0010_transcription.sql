-- The transcription model of an organization, and the transcripts of its recordings.

CREATE TABLE app.transcription_settings (
    org_id        uuid        PRIMARY KEY REFERENCES app.organizations (id) ON DELETE CASCADE,
    provider_slug text        NOT NULL,
    model         text        NOT NULL CHECK (length(model) BETWEEN 1 AND 200),
    updated_at    timestamptz NOT NULL
);
COMMENT ON TABLE app.transcription_settings IS 'The pinned transcription model; no row = an automatic choice among those that can be used.';

CREATE TABLE app.transcripts (
    org_id       uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    -- lower-case hex SHA-256 of the recording
    content_hash text        NOT NULL,
    -- provider/model
    target       text        NOT NULL,
    text         text        NOT NULL,
    -- length of the recording as the provider measured it
    seconds      double precision,
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (org_id, content_hash, target)
);
COMMENT ON TABLE app.transcripts IS
    'What a transcription model heard: the same bytes with the same model are not paid for twice (MOD-66). Gone when no file of the organization has these bytes any more.';

CREATE INDEX files_chat_by_content ON app.files (org_id, content_hash) WHERE purpose = 'chat' AND content_hash IS NOT NULL;
