-- Branding: an organization's accent colour, logo and favicons.

CREATE TABLE app.branding (
    org_id        uuid        PRIMARY KEY REFERENCES app.organizations (id) ON DELETE CASCADE,
    -- one more with every change
    version       bigint      NOT NULL CHECK (version > 0),
    accent_color  text        CHECK (accent_color ~ '^#[0-9a-f]{6}$'),
    -- entity tags of the images that there are
    logo          text        CHECK (logo ~ '^[0-9a-f]{32}$'),
    favicon_light text        CHECK (favicon_light ~ '^[0-9a-f]{32}$'),
    favicon_dark  text        CHECK (favicon_dark ~ '^[0-9a-f]{32}$'),
    updated_at    timestamptz NOT NULL
);
COMMENT ON TABLE app.branding IS
    'How an organization looks to its members; no row = as Tale looks by itself. Anybody may read it.';

CREATE TABLE app.branding_images (
    org_id     uuid    NOT NULL REFERENCES app.branding (org_id) ON DELETE CASCADE,
    slot       text    NOT NULL CHECK (slot IN ('logo', 'favicon-light', 'favicon-dark')),
    media_type text    NOT NULL CHECK (media_type IN ('image/svg+xml', 'image/png', 'image/jpeg', 'image/webp', 'image/x-icon')),
    -- pixels; none of drawings
    width      integer CHECK (width BETWEEN 1 AND 4096),
    height     integer CHECK (height BETWEEN 1 AND 4096),
    content    bytea   NOT NULL CHECK (octet_length(content) BETWEEN 1 AND 1048576),
    PRIMARY KEY (org_id, slot)
);
COMMENT ON TABLE app.branding_images IS
    'The images of app.branding as they were uploaded. Judged before they were stored: drawings are without scripts and references.';
