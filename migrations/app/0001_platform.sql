-- What every room of the application database builds on: the audit log and the job queue.

CREATE TABLE app.audit_entries (
    id            uuid        PRIMARY KEY,
    org_id        uuid,
    actor_kind    text        NOT NULL CHECK (actor_kind IN ('user', 'api', 'system')),
    actor_user_id uuid,
    actor_key_id  uuid,
    action        text        NOT NULL,
    category      text        NOT NULL,
    resource_type text        NOT NULL,
    resource_id   text,
    details       jsonb       NOT NULL DEFAULT '{}',
    at            timestamptz NOT NULL
);
COMMENT ON TABLE app.audit_entries IS
    'One row per recorded act, written in the transaction of the act. No foreign keys: an entry outlives what it names. org_id is null for acts on the whole deployment.';
CREATE INDEX audit_entries_by_org ON app.audit_entries (org_id, at DESC, id DESC);

CREATE SEQUENCE app.job_seq;
CREATE SEQUENCE app.job_lease_token;

CREATE TABLE app.jobs (
    id               uuid        PRIMARY KEY,
    org_id           uuid,
    -- The organization as a place in the queue; jobs of the deployment share the zero place.
    queue_org        uuid        NOT NULL GENERATED ALWAYS AS (coalesce(org_id, '00000000-0000-0000-0000-000000000000'::uuid)) STORED,
    kind             text        NOT NULL,
    dedupe_key       text,
    payload          jsonb       NOT NULL,
    state            text        NOT NULL CHECK (state IN ('waiting', 'ready', 'running', 'dead')),
    -- Order inside one organization.
    seq              bigint      NOT NULL DEFAULT nextval('app.job_seq'),
    run_at           timestamptz NOT NULL,
    attempts         integer     NOT NULL DEFAULT 0,
    lease_holder     text,
    lease_token      bigint,
    lease_expires_at timestamptz,
    error_code       text,
    error_message    text,
    created_at       timestamptz NOT NULL DEFAULT now(),
    updated_at       timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT jobs_lease_while_running CHECK ((state = 'running') = (lease_token IS NOT NULL)),
    CONSTRAINT jobs_lease_is_whole CHECK (
        (lease_token IS NULL) = (lease_holder IS NULL) AND (lease_token IS NULL) = (lease_expires_at IS NULL)
    )
);
COMMENT ON TABLE app.jobs IS
    'Background jobs that are not done. waiting: run_at lies ahead; ready: may be claimed; running: held by a lease; dead: given up, kept for a person to see. A finished job is deleted.';
COMMENT ON COLUMN app.jobs.dedupe_key IS
    'At most one job of a kind with this key is queued, and at most one runs.';
COMMENT ON COLUMN app.jobs.lease_token IS
    'Fencing token: grows with each claim, so what a worker that lost its lease still tries to write is refused.';

CREATE UNIQUE INDEX jobs_one_queued_per_key ON app.jobs (kind, dedupe_key)
    WHERE dedupe_key IS NOT NULL AND state IN ('waiting', 'ready');
CREATE UNIQUE INDEX jobs_one_running_per_key ON app.jobs (kind, dedupe_key)
    WHERE dedupe_key IS NOT NULL AND state = 'running';
CREATE INDEX jobs_ready ON app.jobs (queue_org, kind, seq) WHERE state = 'ready';
CREATE INDEX jobs_waiting ON app.jobs (run_at) WHERE state = 'waiting';
CREATE INDEX jobs_running ON app.jobs (queue_org, kind) WHERE state = 'running';
CREATE INDEX jobs_leases ON app.jobs (lease_expires_at) WHERE state = 'running';
CREATE INDEX jobs_dead ON app.jobs (org_id, updated_at DESC) WHERE state = 'dead';

CREATE TABLE app.job_schedules (
    kind    text        PRIMARY KEY,
    next_at timestamptz NOT NULL
);
COMMENT ON TABLE app.job_schedules IS
    'When a recurring job of the deployment is due next. Decides which of several workers enqueues it.';
