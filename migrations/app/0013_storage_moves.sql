-- Moving an organization's files from the deployment's object store to its own bucket.

CREATE TABLE app.storage_moves (
    org_id     uuid        PRIMARY KEY REFERENCES app.organizations (id) ON DELETE CASCADE,
    -- changes with every run
    id         uuid        NOT NULL,
    state      text        NOT NULL CHECK (state IN ('running', 'completed', 'failed')),
    -- the bucket the run moves to
    target     text        NOT NULL,
    -- files of the organization when the run began
    total      bigint      NOT NULL,
    moved      bigint      NOT NULL DEFAULT 0,
    -- nothing to do: in the bucket already, or gone
    skipped    bigint      NOT NULL DEFAULT 0,
    -- not moved; the original is where it was
    failed     bigint      NOT NULL DEFAULT 0,
    bytes      bigint      NOT NULL DEFAULT 0,
    -- the last file that was dealt with
    after_id   uuid,
    -- what is being moved: its copy is removed by the next attempt if the file was purged meanwhile
    at_key     text,
    -- why the run ended early
    error_code text,
    error      text,
    started_at timestamptz NOT NULL,
    ended_at   timestamptz,
    CHECK ((state = 'running') = (ended_at IS NULL))
);
COMMENT ON TABLE app.storage_moves IS 'The latest move of an organization''s files to its own bucket.';
