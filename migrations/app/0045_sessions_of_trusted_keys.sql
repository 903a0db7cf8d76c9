-- Which key of a reverse proxy began a session, so that its revocation can end what it began (TRH-12). Sessions that began
-- before do not know.

ALTER TABLE app.sessions
    ADD COLUMN trusted_key_id uuid REFERENCES app.trusted_header_keys (id) ON DELETE SET NULL;
CREATE INDEX sessions_by_trusted_key ON app.sessions (trusted_key_id) WHERE trusted_key_id IS NOT NULL;
COMMENT ON COLUMN app.sessions.trusted_key_id IS 'The key of the reverse proxy that began the session.';
