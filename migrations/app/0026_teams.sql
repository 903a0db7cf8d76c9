-- Teams: groups of an organization's members.

CREATE TABLE app.teams (
    org_id      uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    id          uuid        NOT NULL,
    name        text        NOT NULL,
    -- the name as it is compared: lower-cased, with single spaces
    name_key    text        NOT NULL,
    description text        NOT NULL DEFAULT '',
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (org_id, id),
    CONSTRAINT teams_name_key UNIQUE (org_id, name_key)
);
COMMENT ON TABLE app.teams IS 'Teams of an organization (TEAM-1).';

CREATE TABLE app.team_members (
    org_id     uuid        NOT NULL,
    team_id    uuid        NOT NULL,
    user_id    uuid        NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (org_id, team_id, user_id),
    FOREIGN KEY (org_id, team_id) REFERENCES app.teams (org_id, id) ON DELETE CASCADE,
    FOREIGN KEY (org_id, user_id) REFERENCES app.memberships (org_id, user_id) ON DELETE CASCADE
);
CREATE INDEX team_members_by_person ON app.team_members (org_id, user_id);
COMMENT ON TABLE app.team_members IS 'Who is in a team; goes with the membership of the organization (MEM-10).';
