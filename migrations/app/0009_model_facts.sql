-- Fields that a custom definition adds to the body of its requests (MOD-76).

ALTER TABLE app.providers ADD COLUMN extra_body jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN app.providers.extra_body IS 'Added to the body of each request to the provider. Holds no secret and no field of the request itself.';
