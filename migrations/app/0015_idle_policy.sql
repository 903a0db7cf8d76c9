-- How long a session of somebody who belongs to the organization may be idle.

ALTER TABLE app.organizations
    ADD COLUMN session_idle_minutes integer CHECK (session_idle_minutes BETWEEN 1 AND 1440);
COMMENT ON COLUMN app.organizations.session_idle_minutes IS
    'Sessions of its members end after so many minutes without use; NULL = the deployment alone decides. The shortest window of all organizations of a person counts.';
