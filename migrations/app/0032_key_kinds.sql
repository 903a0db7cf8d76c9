-- API keys of every kind: besides a person's own those for a member, a team or the organization.

ALTER TABLE app.api_keys
    DROP CONSTRAINT api_keys_kind_check,
    ALTER COLUMN user_id DROP NOT NULL,
    -- where the key works; NULL = in every organization of its holder
    ADD COLUMN org_id      uuid REFERENCES app.organizations (id) ON DELETE CASCADE,
    ADD COLUMN team_id     uuid,
    -- the role that a key of a team or an organization acts with
    ADD COLUMN role        text CHECK (role IN ('member', 'editor', 'developer', 'admin')),
    -- who made it; NULL in older personal keys, whose holder did
    ADD COLUMN maker_id    uuid REFERENCES app.users (id) ON DELETE SET NULL,
    -- when its successor was made
    ADD COLUMN replaced_at timestamptz,
    ADD CONSTRAINT api_keys_of_teams FOREIGN KEY (org_id, team_id) REFERENCES app.teams (org_id, id)
        ON DELETE SET NULL (team_id),
    ADD CONSTRAINT api_keys_kind_check CHECK (CASE kind
        WHEN 'personal' THEN user_id IS NOT NULL AND org_id IS NULL AND team_id IS NULL AND role IS NULL
        WHEN 'member' THEN user_id IS NOT NULL AND org_id IS NOT NULL AND team_id IS NULL AND role IS NULL
        WHEN 'team' THEN user_id IS NULL AND org_id IS NOT NULL AND role IS NOT NULL AND role <> 'admin'
        WHEN 'organization' THEN user_id IS NULL AND org_id IS NOT NULL AND team_id IS NULL AND role IS NOT NULL
        ELSE false END);
CREATE INDEX api_keys_by_organization ON app.api_keys (org_id, created_at DESC) WHERE org_id IS NOT NULL;
CREATE INDEX api_keys_by_team ON app.api_keys (org_id, team_id) WHERE team_id IS NOT NULL;
CREATE INDEX api_keys_by_maker ON app.api_keys (maker_id) WHERE maker_id IS NOT NULL;
COMMENT ON TABLE app.api_keys IS
    'API keys: of people, valid in every organization of the holder, and those made in one organization for a member, a team or the organization. Only the SHA-256 of a key is kept (KEY-16).';
