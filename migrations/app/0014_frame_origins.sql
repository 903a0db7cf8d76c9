-- Embedding: the origins whose pages may show Tale in a frame, per organization.

ALTER TABLE app.trusted_header_settings
    ADD COLUMN frame_origins text[] NOT NULL DEFAULT '{}'
        CHECK (cardinality(frame_origins) <= 10);
COMMENT ON COLUMN app.trusted_header_settings.frame_origins IS
    'Serialized origins such as https://portal.example.org, sorted; none = pages of the organization are in no frame.';
