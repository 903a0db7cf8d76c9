-- When the person of a session showed again that it is them, before what guards their account could change.

ALTER TABLE app.sessions ADD COLUMN proved_at timestamptz;
COMMENT ON COLUMN app.sessions.proved_at IS 'When its person last proved who they are inside of it: password, code or passkey. NULL: only by signing in.';
