-- The end of a session is announced, and failed sign-ins say in columns of their own who and where from.

CREATE FUNCTION app.announce_session_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('tale_sessions', OLD.user_id::text);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION app.announce_session_end() IS
    'Tells every process whose session ended, however it ended, so that no copy of it in a cookie is believed any longer.';
CREATE TRIGGER sessions_end_is_announced
    AFTER DELETE ON app.sessions
    FOR EACH ROW EXECUTE FUNCTION app.announce_session_end();

CREATE FUNCTION app.announce_person_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('tale_sessions', OLD.id::text);
    RETURN NULL;
END $$;
COMMENT ON FUNCTION app.announce_person_change() IS
    'Tells every process that copies of this person''s sessions carry an old name or address.';
CREATE TRIGGER users_change_is_announced
    AFTER UPDATE OF name, email ON app.users
    FOR EACH ROW WHEN (OLD.name IS DISTINCT FROM NEW.name OR OLD.email IS DISTINCT FROM NEW.email)
    EXECUTE FUNCTION app.announce_person_change();

ALTER TABLE app.audit_entries
    ADD COLUMN actor_email      text,
    ADD COLUMN actor_email_hash text,
    ADD COLUMN ip_address       text,
    ADD COLUMN ip_address_hash  text;
COMMENT ON COLUMN app.audit_entries.actor_email IS 'Lower-cased address of a failed sign-in; empty when its hash is kept (DCF-111).';
COMMENT ON COLUMN app.audit_entries.actor_email_hash IS 'Hexadecimal HMAC-SHA-256 of the lower-cased address under TALE_AUDIT_PEPPER (DCF-110).';
COMMENT ON COLUMN app.audit_entries.ip_address IS 'Network of a failed sign-in, a /24 or a /64, never the whole address.';
COMMENT ON COLUMN app.audit_entries.ip_address_hash IS 'Hexadecimal HMAC-SHA-256 of the network, written as in ip_address, under TALE_AUDIT_PEPPER.';
