-- Sandboxes: whose sessions there are, what runs and waits in them, what it printed, how long it ran.

CREATE TABLE app.sandbox_sessions (
    -- the spawner's name of the session; the same person in the same organization always has the same
    id                 text        PRIMARY KEY CHECK (id ~ '^[a-zA-Z0-9_-]{1,64}$'),
    org_id             uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    -- whose files; stays readable after the person is gone, so it is no foreign key
    user_id            uuid        NOT NULL,
    workload           text        NOT NULL CHECK (workload IN ('project', 'workflow', 'render')),
    profile            text        NOT NULL CHECK (profile IN ('default', 'agent', 'agent-light')),
    -- creating and active hold one place of their class; released holds none, whatever still runs on the host
    allocation         text        NOT NULL DEFAULT 'released'
                                   CHECK (allocation IN ('creating', 'active', 'released', 'destroying')),
    -- the hold that the spawner is still to be told has ended
    release_generation text,
    -- when it is told next
    release_at         timestamptz,
    created_at         timestamptz NOT NULL DEFAULT now(),
    used_at            timestamptz NOT NULL DEFAULT now(),
    CHECK ((release_generation IS NULL) = (release_at IS NULL))
);
CREATE INDEX sandbox_sessions_by_org ON app.sandbox_sessions (org_id);
CREATE INDEX sandbox_sessions_to_release ON app.sandbox_sessions (release_at) WHERE release_at IS NOT NULL;
CREATE INDEX sandbox_sessions_to_destroy ON app.sandbox_sessions (used_at) WHERE allocation = 'destroying';
COMMENT ON TABLE app.sandbox_sessions IS 'Sandboxes with a workspace, and which of them hold a place under the organization''s limits. What runs on the host is the spawner''s to say.';

CREATE TABLE app.code_runs (
    id               uuid        PRIMARY KEY,
    org_id           uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    user_id          uuid        NOT NULL,
    -- no foreign key: what was run stays in the list after the session and its files are deleted
    session_id       text        NOT NULL,
    language         text        NOT NULL CHECK (language IN ('python', 'shell')),
    code             text        NOT NULL CHECK (octet_length(code) BETWEEN 1 AND 65536),
    state            text        NOT NULL DEFAULT 'waiting'
                                 CHECK (state IN ('waiting', 'starting', 'running', 'completed', 'failed', 'cancelled')),
    -- why it waits, or why it ended as it did; none = the organization's turn, or its own exit code
    reason           text,
    message          text,
    -- the place in the line of the host, as it was said last
    host_position    integer,
    queued_at        timestamptz NOT NULL DEFAULT now(),
    -- the earliest next try
    look_at          timestamptz NOT NULL DEFAULT now(),
    started_at       timestamptz,
    ended_at         timestamptz,
    cancel_requested boolean     NOT NULL DEFAULT false,
    -- the process that attends to it, and until when that is believed
    holder           uuid,
    held_until       timestamptz,
    -- the session's present hold
    generation       text,
    exit_code        integer,
    duration_ms      bigint,
    -- the last event of the session's journal that is in code_run_output or needs no place there
    last_seq         bigint      NOT NULL DEFAULT 0,
    output_bytes     bigint      NOT NULL DEFAULT 0,
    -- whether all that the program printed is there; unknown until it ended
    output_complete  boolean,
    CHECK ((state IN ('starting', 'running')) = (held_until IS NOT NULL)),
    CHECK ((state IN ('completed', 'failed', 'cancelled')) = (ended_at IS NOT NULL))
);
CREATE INDEX code_runs_by_person ON app.code_runs (org_id, user_id, id);
CREATE INDEX code_runs_open ON app.code_runs (org_id, session_id) WHERE ended_at IS NULL;
CREATE INDEX code_runs_line ON app.code_runs (org_id, queued_at, id) WHERE state = 'waiting';
CREATE INDEX code_runs_attended ON app.code_runs (held_until) WHERE held_until IS NOT NULL;
CREATE UNIQUE INDEX code_runs_one_at_a_time ON app.code_runs (session_id) WHERE state IN ('starting', 'running');
COMMENT ON TABLE app.code_runs IS 'Programs that people run in their sandbox. One that starts or runs is attended to by a process; when that falls silent another one goes on from last_seq.';

CREATE TABLE app.code_run_output (
    run_id uuid   NOT NULL REFERENCES app.code_runs (id) ON DELETE CASCADE,
    -- the last event of the session's journal that this holds
    seq    bigint NOT NULL,
    org_id uuid   NOT NULL,
    stream text   NOT NULL CHECK (stream IN ('stdout', 'stderr')),
    bytes  bytea  NOT NULL,
    PRIMARY KEY (run_id, seq)
);
COMMENT ON TABLE app.code_run_output IS 'What programs printed, in order. Written together with last_seq of the run, so that each byte is there once.';

CREATE TABLE app.sandbox_days (
    org_id   uuid   NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    day      date   NOT NULL,
    user_id  uuid   NOT NULL,
    workload text   NOT NULL,
    runs     bigint NOT NULL,
    -- time during which a place was held by something that ran
    ms       bigint NOT NULL,
    PRIMARY KEY (org_id, day, user_id, workload)
);
COMMENT ON TABLE app.sandbox_days IS 'Sandbox time by the day on which it ended. Added to in the transaction that ends a run.';
