-- Amounts that are set aside once and used by many calls, and the keys of the model gateway that spend them.

CREATE TABLE app.usage_allowances (
    id             uuid        PRIMARY KEY,
    org_id         uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    user_id        uuid,
    api_key_id     uuid,
    source         text        NOT NULL CHECK (length(source) BETWEEN 1 AND 200),
    -- when it was admitted: everything that it pays for counts toward the periods of that day
    admitted_at    timestamptz NOT NULL,
    day            date        NOT NULL,
    -- where the sums hold what is left of it
    stripe         smallint    NOT NULL,
    -- the most that may be used; null where nothing limits it
    cost_micro_usd bigint      NOT NULL CHECK (cost_micro_usd >= 0),
    tokens         bigint      CHECK (tokens >= 0),
    requests       bigint      CHECK (requests >= 0),
    spent_cost     bigint      NOT NULL DEFAULT 0,
    spent_tokens   bigint      NOT NULL DEFAULT 0,
    spent_requests bigint      NOT NULL DEFAULT 0,
    -- the calls that run, and what they hold of it
    calls          bigint      NOT NULL DEFAULT 0 CHECK (calls >= 0),
    held_cost      bigint      NOT NULL DEFAULT 0 CHECK (held_cost >= 0),
    held_tokens    bigint      NOT NULL DEFAULT 0 CHECK (held_tokens >= 0),
    held_requests  bigint      NOT NULL DEFAULT 0 CHECK (held_requests >= 0),
    expires_at     timestamptz NOT NULL,
    -- from here on no call begins
    ended_at       timestamptz,
    -- the last call has ended too, and what was left has been given back
    settled_at     timestamptz CHECK (settled_at IS NULL OR calls = 0)
) WITH (fillfactor = 70);
CREATE INDEX usage_allowances_by_org ON app.usage_allowances (org_id);
CREATE INDEX usage_allowances_open ON app.usage_allowances (expires_at) WHERE ended_at IS NULL;
CREATE INDEX usage_allowances_settled ON app.usage_allowances (settled_at) WHERE settled_at IS NOT NULL;
COMMENT ON TABLE app.usage_allowances IS 'What a piece of work with many model calls may use. What is neither used nor given back counts as held by the holders of limits.';

ALTER TABLE app.usage_holds ADD COLUMN allowance_id uuid;
COMMENT ON COLUMN app.usage_holds.allowance_id IS 'What pays for the work; the holders of limits hold that, and not this row.';

CREATE TABLE app.gateway_keys (
    id            uuid        PRIMARY KEY REFERENCES app.usage_allowances (id) ON DELETE CASCADE,
    org_id        uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    secret_sha256 bytea       NOT NULL UNIQUE CHECK (octet_length(secret_sha256) = 32),
    -- [{provider, model, credential}]: exactly what it may call, and with what
    models        jsonb       NOT NULL CHECK (jsonb_typeof(models) = 'array'),
    -- what it was minted from, for who mints it again
    minted_from   jsonb       NOT NULL,
    created_at    timestamptz NOT NULL
);
CREATE INDEX gateway_keys_by_org ON app.gateway_keys (org_id);
COMMENT ON TABLE app.gateway_keys IS 'Keys of the model gateway, by the digest of their secret. Never changed; whether one lives and what it has spent stands in its allowance.';

CREATE TABLE app.gateway_settings (
    singleton                   boolean     PRIMARY KEY DEFAULT true CHECK (singleton),
    provider_concurrency        integer     NOT NULL CHECK (provider_concurrency BETWEEN 1 AND 5000),
    custom_provider_concurrency integer     NOT NULL CHECK (custom_provider_concurrency BETWEEN 1 AND 5000),
    stream_idle_timeout_seconds integer     NOT NULL CHECK (stream_idle_timeout_seconds BETWEEN 1 AND 86400),
    log_retention_days          integer     NOT NULL CHECK (log_retention_days BETWEEN 1 AND 36500),
    updated_at                  timestamptz NOT NULL
);
COMMENT ON TABLE app.gateway_settings IS 'What the backend laid down for every replica of the model gateway; no row = the defaults.';

CREATE TABLE app.gateway_log (
    id             bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at             timestamptz NOT NULL,
    org_id         uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    key_id         uuid        NOT NULL,
    provider_slug  text        NOT NULL,
    model          text        NOT NULL,
    input_tokens   bigint      NOT NULL,
    output_tokens  bigint      NOT NULL,
    cached_tokens  bigint      NOT NULL,
    cost_micro_usd bigint      NOT NULL,
    first_byte_ms  bigint,
    duration_ms    bigint      NOT NULL,
    status         integer     NOT NULL
);
CREATE INDEX gateway_log_by_time ON app.gateway_log (at);
CREATE INDEX gateway_log_by_org ON app.gateway_log (org_id, id);
COMMENT ON TABLE app.gateway_log IS 'One row per call through the model gateway, for a few days. Says who called what and how it went, never what was said. Not used for budgets or usage.';

-- Admits a batch of calls against their allowances, in its order (one round trip).
--
-- p_allowances: [{a, org, id}], numbered from 1. p_calls: [{n, id, a, provider, model, need, floor}]; need is
-- [tokens, cost, requests], floor is [input, output, cached, units, cost].
-- Answers one row per call, in order: held, full, ended, expired or unknown, and what was left before (null = no limit).
--
-- Allowances are locked in the order of their ids, and always before sums over holders of limits.
CREATE FUNCTION app.usage_draw(p_owner uuid, p_stripe smallint, p_now timestamptz, p_allowances jsonb, p_calls jsonb)
RETURNS TABLE (verdict text, left_tokens bigint, left_cost bigint, left_requests bigint)
LANGUAGE plpgsql AS $$
DECLARE
    v_one   record;
    v_state text[] := '{}';
    v_t     bigint[] := '{}';
    v_c     bigint[] := '{}';
    v_r     bigint[] := '{}';
    v_ids   uuid[] := '{}';
BEGIN
    FOR v_one IN
        SELECT x.a, k.ended_at, k.expires_at, k.tokens - k.spent_tokens - k.held_tokens AS t,
               k.cost_micro_usd - k.spent_cost - k.held_cost AS c, k.requests - k.spent_requests - k.held_requests AS r
        FROM jsonb_to_recordset(p_allowances) AS x(a integer, org uuid, id uuid)
        JOIN app.usage_allowances k ON k.org_id = x.org AND k.id = x.id
        ORDER BY k.id FOR UPDATE OF k
    LOOP
        v_state[v_one.a] := CASE WHEN v_one.ended_at IS NOT NULL THEN 'ended' WHEN v_one.expires_at <= p_now THEN 'expired' ELSE 'held' END;
        v_t[v_one.a] := v_one.t;
        v_c[v_one.a] := v_one.c;
        v_r[v_one.a] := v_one.r;
    END LOOP;

    FOR v_one IN
        SELECT x.id, x.a, x.need FROM jsonb_to_recordset(p_calls) AS x(n integer, id uuid, a integer, need bigint[]) ORDER BY x.n
    LOOP
        verdict := coalesce(v_state[v_one.a], 'unknown');
        left_tokens := v_t[v_one.a];
        left_cost := v_c[v_one.a];
        left_requests := v_r[v_one.a];
        IF verdict = 'held' THEN
            IF v_one.need[1] > left_tokens OR v_one.need[2] > left_cost OR v_one.need[3] > left_requests THEN
                verdict := 'full';
            ELSE
                v_t[v_one.a] := left_tokens - v_one.need[1];
                v_c[v_one.a] := left_cost - v_one.need[2];
                v_r[v_one.a] := left_requests - v_one.need[3];
                v_ids := v_ids || v_one.id;
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;

    WITH admitted AS (
        SELECT c.id AS call, c.provider, c.model, c.need, c.floor, k.*
        FROM jsonb_to_recordset(p_calls) AS c(id uuid, a integer, provider text, model text, need bigint[], floor bigint[])
        JOIN jsonb_to_recordset(p_allowances) AS x(a integer, org uuid, id uuid) ON x.a = c.a
        JOIN app.usage_allowances k ON k.org_id = x.org AND k.id = x.id
        WHERE c.id = ANY (v_ids)
    ),
    held AS (
        INSERT INTO app.usage_holds (id, org_id, owner, user_id, api_key_id, source, provider_slug, model, admitted_at, day,
            kept_at, stripe, tokens, cost_micro_usd, requests, floor_input, floor_output, floor_cached, floor_units, floor_cost,
            allowance_id)
        SELECT call, org_id, p_owner, user_id, api_key_id, source, provider, model, admitted_at, day, p_now, p_stripe,
               need[1], need[2], need[3], floor[1], floor[2], floor[3], floor[4], floor[5], id
        FROM admitted ORDER BY call
    )
    UPDATE app.usage_allowances k SET calls = k.calls + s.n, held_tokens = k.held_tokens + s.t,
        held_cost = k.held_cost + s.c, held_requests = k.held_requests + s.r
    FROM (SELECT id, count(*) AS n, sum(need[1]) AS t, sum(need[2]) AS c, sum(need[3]) AS r FROM admitted GROUP BY id) AS s
    WHERE k.id = s.id;
END;
$$;
COMMENT ON FUNCTION app.usage_draw IS 'Admits a batch of calls against their allowances; see the migration.';

-- Ends allowances: no call begins any more. What is left of one without running calls is given back at once, of the others
-- when the last call ends. p_entries: [{org, id}]. Answers how many were open.
CREATE FUNCTION app.usage_allowance_end(p_now timestamptz, p_entries jsonb) RETURNS bigint
LANGUAGE sql AS $$
    WITH due AS MATERIALIZED (
        SELECT a.id FROM jsonb_to_recordset(p_entries) AS x(org uuid, id uuid)
        JOIN app.usage_allowances a ON a.org_id = x.org AND a.id = x.id
        WHERE a.ended_at IS NULL ORDER BY a.id FOR UPDATE OF a
    ),
    ended AS (
        UPDATE app.usage_allowances a SET ended_at = p_now, settled_at = CASE WHEN a.calls = 0 THEN p_now END
        FROM due WHERE a.id = due.id AND a.ended_at IS NULL
        RETURNING a.*
    ),
    counted AS (
        INSERT INTO app.usage_counters AS n (org_id, holder, day, stripe, used_tokens, used_cost_micro_usd, used_requests,
            held_tokens, held_cost_micro_usd, held_requests)
        SELECT org_id, holder, day, stripe, 0, 0, 0, -sum(greatest(tokens - spent_tokens, 0)),
               -sum(greatest(cost_micro_usd - spent_cost, 0)), -sum(greatest(requests - spent_requests, 0))
        FROM ended CROSS JOIN LATERAL (VALUES ('org'), ('user:' || user_id), ('key:' || api_key_id)) AS holders (holder)
        WHERE settled_at IS NOT NULL AND holder IS NOT NULL
        GROUP BY org_id, holder, day, stripe ORDER BY org_id, holder, day, stripe
        ON CONFLICT (org_id, holder, day, stripe) DO UPDATE SET
            held_tokens = n.held_tokens + excluded.held_tokens,
            held_cost_micro_usd = n.held_cost_micro_usd + excluded.held_cost_micro_usd,
            held_requests = n.held_requests + excluded.held_requests
    )
    SELECT count(*) FROM ended
$$;
COMMENT ON FUNCTION app.usage_allowance_end IS 'Ends allowances and gives back what is left; see the migration.';

-- As before, and a call that an allowance paid for takes what it used from there: as much less is held by the holders of
-- limits.
CREATE OR REPLACE FUNCTION app.usage_settle(p_now timestamptz, p_entries jsonb) RETURNS bigint
LANGUAGE sql AS $$
    WITH closed AS (
        DELETE FROM app.usage_holds h
        USING jsonb_to_recordset(p_entries) AS x(id uuid, org uuid, released boolean, outcome text,
            silent_since timestamptz, used bigint[])
        WHERE h.org_id = x.org AND h.id = x.id AND (x.silent_since IS NULL OR h.kept_at < x.silent_since)
        RETURNING h.*, x.released, x.outcome, x.used
    ),
    booked AS (
        INSERT INTO app.usage_bookings (reservation_id, org_id, admitted_at, booked_at, user_id, api_key_id, source,
            provider_slug, model, requests, input_tokens, output_tokens, cached_tokens, units, cost_micro_usd, outcome)
        SELECT id, org_id, admitted_at, p_now, user_id, api_key_id, source, provider_slug, model, requests,
               used[1], used[2], used[3], used[4], used[5], outcome
        FROM closed WHERE NOT released ORDER BY id
        ON CONFLICT (reservation_id) DO NOTHING
        RETURNING reservation_id
    ),
    summed AS (
        INSERT INTO app.usage_days AS n (org_id, day, user_id, api_key_id, source, provider_slug, model, stripe, requests,
            input_tokens, output_tokens, cached_tokens, units, cost_micro_usd)
        SELECT org_id, day, user_id, api_key_id, source, provider_slug, model, stripe, sum(requests), sum(used[1]),
               sum(used[2]), sum(used[3]), sum(used[4]), sum(used[5])
        FROM closed JOIN booked ON reservation_id = id
        GROUP BY org_id, day, user_id, api_key_id, source, provider_slug, model, stripe
        ORDER BY org_id, day, user_id, api_key_id, source, provider_slug, model, stripe
        ON CONFLICT ON CONSTRAINT usage_days_key DO UPDATE SET
            requests = n.requests + excluded.requests,
            input_tokens = n.input_tokens + excluded.input_tokens,
            output_tokens = n.output_tokens + excluded.output_tokens,
            cached_tokens = n.cached_tokens + excluded.cached_tokens,
            units = n.units + excluded.units,
            cost_micro_usd = n.cost_micro_usd + excluded.cost_micro_usd
    ),
    drawn AS (
        SELECT allowance_id AS id, count(*) AS calls, sum(tokens) AS held_t, sum(cost_micro_usd) AS held_c, sum(requests) AS held_r,
               coalesce(sum(used[1] + used[2]) FILTER (WHERE reservation_id IS NOT NULL), 0) AS used_t,
               coalesce(sum(used[5]) FILTER (WHERE reservation_id IS NOT NULL), 0) AS used_c,
               coalesce(sum(requests) FILTER (WHERE reservation_id IS NOT NULL), 0) AS used_r
        FROM closed LEFT JOIN booked ON reservation_id = closed.id
        WHERE allowance_id IS NOT NULL GROUP BY allowance_id
    ),
    locked AS MATERIALIZED (
        SELECT a.id FROM app.usage_allowances a WHERE a.id IN (SELECT id FROM drawn) ORDER BY a.id FOR UPDATE
    ),
    paid AS (
        UPDATE app.usage_allowances a SET
            calls = a.calls - d.calls, held_tokens = a.held_tokens - d.held_t, held_cost = a.held_cost - d.held_c,
            held_requests = a.held_requests - d.held_r, spent_tokens = a.spent_tokens + d.used_t,
            spent_cost = a.spent_cost + d.used_c, spent_requests = a.spent_requests + d.used_r,
            settled_at = CASE WHEN a.ended_at IS NOT NULL AND a.calls = d.calls THEN p_now END
        FROM drawn d JOIN locked ON locked.id = d.id
        WHERE a.id = d.id
        RETURNING a.org_id, a.user_id, a.api_key_id, a.day, a.stripe,
            greatest(a.tokens - a.spent_tokens + d.used_t, 0)
                - CASE WHEN a.settled_at IS NULL THEN greatest(a.tokens - a.spent_tokens, 0) ELSE 0 END AS freed_t,
            greatest(a.cost_micro_usd - a.spent_cost + d.used_c, 0)
                - CASE WHEN a.settled_at IS NULL THEN greatest(a.cost_micro_usd - a.spent_cost, 0) ELSE 0 END AS freed_c,
            greatest(a.requests - a.spent_requests + d.used_r, 0)
                - CASE WHEN a.settled_at IS NULL THEN greatest(a.requests - a.spent_requests, 0) ELSE 0 END AS freed_r
    ),
    moved AS (
        SELECT org_id, user_id, api_key_id, day, stripe,
               CASE WHEN reservation_id IS NULL THEN 0 ELSE used[1] + used[2] END AS used_t,
               CASE WHEN reservation_id IS NULL THEN 0 ELSE used[5] END AS used_c,
               CASE WHEN reservation_id IS NULL THEN 0 ELSE requests END AS used_r,
               CASE WHEN allowance_id IS NULL THEN tokens ELSE 0 END AS freed_t,
               CASE WHEN allowance_id IS NULL THEN cost_micro_usd ELSE 0 END AS freed_c,
               CASE WHEN allowance_id IS NULL THEN requests ELSE 0 END AS freed_r
        FROM closed LEFT JOIN booked ON reservation_id = id
        UNION ALL
        SELECT org_id, user_id, api_key_id, day, stripe, 0, 0, 0, freed_t, freed_c, freed_r FROM paid
    ),
    counted AS (
        INSERT INTO app.usage_counters AS n (org_id, holder, day, stripe, used_tokens, used_cost_micro_usd, used_requests,
            held_tokens, held_cost_micro_usd, held_requests)
        SELECT org_id, holder, day, stripe, sum(used_t), sum(used_c), sum(used_r), -sum(freed_t), -sum(freed_c), -sum(freed_r)
        FROM moved CROSS JOIN LATERAL (VALUES ('org'), ('user:' || user_id), ('key:' || api_key_id)) AS holders (holder)
        WHERE holder IS NOT NULL
        GROUP BY org_id, holder, day, stripe ORDER BY org_id, holder, day, stripe
        ON CONFLICT (org_id, holder, day, stripe) DO UPDATE SET
            used_tokens = n.used_tokens + excluded.used_tokens,
            used_cost_micro_usd = n.used_cost_micro_usd + excluded.used_cost_micro_usd,
            used_requests = n.used_requests + excluded.used_requests,
            held_tokens = n.held_tokens + excluded.held_tokens,
            held_cost_micro_usd = n.held_cost_micro_usd + excluded.held_cost_micro_usd,
            held_requests = n.held_requests + excluded.held_requests
    )
    SELECT count(*) FROM closed
$$;
COMMENT ON FUNCTION app.usage_settle IS 'Ends holds and books them, each exactly once; see the migrations.';
