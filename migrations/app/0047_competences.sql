-- What is granted to members one by one.

CREATE TABLE app.competence_grants (
    id            uuid        PRIMARY KEY,
    org_id        uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    -- no foreign key to the membership: what was granted to a former member stays listed
    user_id       uuid        NOT NULL REFERENCES app.users (id) ON DELETE CASCADE,
    -- a capability of the platform, which begins with tale:, or a qualification in the organization's own words
    competence    text        NOT NULL CHECK (length(competence) BETWEEN 1 AND 120),
    evidence      text        NOT NULL DEFAULT '',
    granted_by    uuid        REFERENCES app.users (id) ON DELETE SET NULL,
    granted_at    timestamptz NOT NULL,
    -- NULL = never
    expires_at    timestamptz CHECK (expires_at > granted_at),
    revoked_by    uuid        REFERENCES app.users (id) ON DELETE SET NULL,
    revoked_at    timestamptz,
    revoke_reason text        CHECK (revoke_reason IN ('revoked', 'replaced', 'memberRemoved')),
    CONSTRAINT competence_grants_revoked CHECK ((revoked_at IS NULL) = (revoke_reason IS NULL))
);
COMMENT ON TABLE app.competence_grants IS
    'Competences of members (CMP-1…7). At most one that is not revoked for each member and competence; rows are history and stay.';
CREATE UNIQUE INDEX competence_grants_live ON app.competence_grants (org_id, user_id, competence) WHERE revoked_at IS NULL;
CREATE INDEX competence_grants_of_organization ON app.competence_grants (org_id, granted_at DESC, id DESC);
CREATE INDEX competence_grants_of_person ON app.competence_grants (user_id);
CREATE INDEX competence_grants_by_granter ON app.competence_grants (granted_by);
CREATE INDEX competence_grants_by_revoker ON app.competence_grants (revoked_by);
