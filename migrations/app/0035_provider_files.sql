-- Definitions of providers stand in files as well, which may say more than the form does.

ALTER TABLE app.providers
    ADD COLUMN endpoint_mode text CHECK (endpoint_mode IN ('per-credential')),
    ADD COLUMN auth text[] NOT NULL DEFAULT '{api-key,env}',
    ADD COLUMN unreadable text;
COMMENT ON COLUMN app.providers.auth IS 'How credentials may hold their key.';
COMMENT ON COLUMN app.providers.unreadable IS
    'Why the file of the definition cannot be used. While it is set no model of the provider is called.';

ALTER TABLE app.providers DROP CONSTRAINT providers_address;
ALTER TABLE app.providers ADD CONSTRAINT providers_address
    CHECK ((base_url IS NULL) = (kind = 'demo' OR endpoint_mode IS NOT NULL));
ALTER TABLE app.providers DROP CONSTRAINT providers_catalog_source_check;
ALTER TABLE app.providers ADD CONSTRAINT providers_catalog_source_check
    CHECK (catalog_source IN ('models-endpoint', 'openrouter-api', 'none'));
