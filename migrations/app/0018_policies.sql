-- What an organization's administrators lay down, one document per key.

CREATE TABLE app.policies (
    org_id     uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    key        text        NOT NULL CHECK (key ~ '^[a-z][a-z_]{0,62}$'),
    value      jsonb       NOT NULL,
    version    bigint      NOT NULL CHECK (version > 0),
    -- Who wrote it last; NULL = a file that an operator wrote, or the platform.
    updated_by uuid,
    updated_at timestamptz NOT NULL,
    PRIMARY KEY (org_id, key)
);
COMMENT ON TABLE app.policies IS
    'Policies of organizations (POL-1); no row = the defaults. Each write raises the version and stands in the audit log.';

-- What is a policy now and was a setting of its own before. The previous release goes on reading its own table.
INSERT INTO app.policies (org_id, key, value, version, updated_at)
SELECT org_id, 'transcription_model', jsonb_build_object('providerSlug', provider_slug, 'modelId', model), 1, updated_at
  FROM app.transcription_settings;
COMMENT ON TABLE app.transcription_settings IS 'Read by earlier releases only; the policy transcription_model took its place.';
