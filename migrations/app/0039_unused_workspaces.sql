-- Clean-up of workspaces that nobody uses: since when the rule stands as it is, and why a workspace is being deleted.

CREATE TABLE app.sandbox_workspace_retention (
    org_id          uuid        PRIMARY KEY REFERENCES app.organizations (id) ON DELETE CASCADE,
    -- no workspace is deleted as unused before a full window after this
    effective_since timestamptz NOT NULL
);
COMMENT ON TABLE app.sandbox_workspace_retention IS
    'Since when the policy sandbox_workspaces deletes as early as it does now: switching it on and shortening it begin anew. None = since there is the organization.';
-- The rule begins with this release, so nobody's files are late already.
INSERT INTO app.sandbox_workspace_retention (org_id, effective_since) SELECT id, now() FROM app.organizations;

ALTER TABLE app.sandbox_sessions
    -- as the spawner said when it was last asked for its inventory
    ADD COLUMN pinned         boolean NOT NULL DEFAULT false,
    -- when it was last seen pinned, from which the window of an unused workspace counts as well
    ADD COLUMN pinned_at      timestamptz,
    -- why it is being deleted; none, on one that is, = somebody asked for it
    ADD COLUMN destroy_reason text CHECK (destroy_reason IN ('requested', 'unused', 'orphaned')),
    -- when one that is being deleted as unused was used last, for the case that it is kept after all
    ADD COLUMN last_used_at   timestamptz;
