-- The window of idle sessions is a policy like the others. The previous release goes on reading its own column.

INSERT INTO app.policies (org_id, key, value, version, updated_at)
SELECT id, 'session_idle_timeout', jsonb_build_object('enabled', true, 'idleTimeoutMinutes', session_idle_minutes), 1, now()
  FROM app.organizations
 WHERE session_idle_minutes IS NOT NULL;
COMMENT ON COLUMN app.organizations.session_idle_minutes IS
    'Read by earlier releases only; the policy session_idle_timeout took its place.';
