-- Model providers of an organization, its credentials, and its embedding model.

CREATE TABLE app.providers (
    id             uuid        PRIMARY KEY,
    org_id         uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    slug           text        NOT NULL CHECK (slug ~ '^[a-z0-9](-?[a-z0-9])*$' AND length(slug) <= 64),
    display_name   text        NOT NULL CHECK (length(display_name) BETWEEN 1 AND 100),
    kind           text        NOT NULL CHECK (kind IN ('custom', 'demo')),
    api_format     text        NOT NULL CHECK (api_format IN ('openai', 'anthropic')),
    wire_dialect   text        CHECK (wire_dialect IN ('openai-modern')),
    -- Null for the demo model, whose address is known only while it runs.
    base_url       text,
    catalog_source text        NOT NULL CHECK (catalog_source IN ('models-endpoint', 'none')),
    embedding      text        NOT NULL CHECK (embedding IN ('supported', 'unsupported', 'unknown')),
    models         jsonb       NOT NULL DEFAULT '[]',
    version        bigint      NOT NULL DEFAULT 1,
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL,
    CONSTRAINT providers_slug_key UNIQUE (org_id, slug),
    CONSTRAINT providers_address CHECK ((base_url IS NULL) = (kind = 'demo'))
);
COMMENT ON TABLE app.providers IS
    'Provider definitions of one organization. Shipped definitions are data of the program and have no row.';

CREATE TABLE app.provider_history (
    id         uuid        PRIMARY KEY,
    org_id     uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    slug       text        NOT NULL,
    version    bigint      NOT NULL,
    change     text        NOT NULL CHECK (change IN ('created', 'changed', 'deleted')),
    definition jsonb       NOT NULL,
    actor      jsonb       NOT NULL,
    at         timestamptz NOT NULL
);
CREATE INDEX provider_history_by_slug ON app.provider_history (org_id, slug, at DESC);
COMMENT ON TABLE app.provider_history IS 'Every saved state of a custom definition, and the last one of a deleted definition (MOD-9). Holds no secret.';

CREATE TABLE app.provider_catalogs (
    org_id     uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    slug       text        NOT NULL,
    models     jsonb       NOT NULL DEFAULT '[]',
    -- Grows with every list that was read.
    revision   bigint      NOT NULL DEFAULT 0,
    fetched_at timestamptz,
    error      text,
    error_at   timestamptz,
    PRIMARY KEY (org_id, slug)
);
COMMENT ON TABLE app.provider_catalogs IS
    'The last good list of a provider whose models are read from its own endpoint, and the last failure to read it (MOD-15).';

CREATE TABLE app.credentials (
    id              uuid        PRIMARY KEY,
    org_id          uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    provider_slug   text        NOT NULL,
    name            text        NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    auth_method     text        NOT NULL CHECK (auth_method IN ('api-key', 'env', 'none')),
    secret          text,
    masked          text,
    secret_env      text,
    endpoint        text,
    model_allowlist text[]      NOT NULL DEFAULT '{}',
    enabled         boolean     NOT NULL DEFAULT true,
    is_default      boolean     NOT NULL DEFAULT false,
    version         bigint      NOT NULL DEFAULT 1,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    CONSTRAINT credentials_name_key UNIQUE (org_id, name),
    CONSTRAINT credentials_secret_by_method CHECK (
        (secret IS NOT NULL AND masked IS NOT NULL) = (auth_method = 'api-key')
        AND (secret_env IS NOT NULL) = (auth_method = 'env')
    ),
    CONSTRAINT credentials_default_is_enabled CHECK (enabled OR NOT is_default)
);
CREATE UNIQUE INDEX credentials_one_default ON app.credentials (org_id, provider_slug) WHERE is_default;
CREATE INDEX credentials_by_provider ON app.credentials (org_id, provider_slug);
COMMENT ON TABLE app.credentials IS
    'Access of an organization to a provider. provider_slug may name a shipped definition, so it references no table.';
COMMENT ON COLUMN app.credentials.secret IS 'Encrypted for this row (context credential:<id>).';
COMMENT ON COLUMN app.credentials.masked IS 'The excerpt that is shown: first four and last two characters, or a placeholder (MOD-24).';

CREATE TABLE app.embedding_settings (
    org_id        uuid        PRIMARY KEY REFERENCES app.organizations (id) ON DELETE CASCADE,
    provider_slug text        NOT NULL,
    model         text        NOT NULL CHECK (length(model) BETWEEN 1 AND 200),
    dimensions    integer     NOT NULL CHECK (dimensions BETWEEN 1 AND 16000),
    updated_at    timestamptz NOT NULL
);
COMMENT ON TABLE app.embedding_settings IS 'The embedding model of an organization; no row = search runs on keywords alone.';
