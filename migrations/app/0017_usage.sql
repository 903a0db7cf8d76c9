-- What is used: reservations of running work, bookings of ended work, and the sums over both.

CREATE TABLE app.usage_holds (
    -- the reservation; also the id of its booking
    id             uuid        PRIMARY KEY,
    org_id         uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    -- the process that does the work
    owner          uuid        NOT NULL,
    user_id        uuid,
    api_key_id     uuid,
    source         text        NOT NULL CHECK (length(source) BETWEEN 1 AND 200),
    provider_slug  text        NOT NULL,
    model          text        NOT NULL,
    admitted_at    timestamptz NOT NULL,
    -- its day in UTC: the work counts toward the periods in which it was admitted
    day            date        NOT NULL,
    kept_at        timestamptz NOT NULL,
    stripe         smallint    NOT NULL,
    tokens         bigint      NOT NULL CHECK (tokens >= 0),
    cost_micro_usd bigint      NOT NULL CHECK (cost_micro_usd >= 0),
    requests       bigint      NOT NULL CHECK (requests >= 0),
    -- what is booked when nobody says how the work ended
    floor_input    bigint      NOT NULL,
    floor_output   bigint      NOT NULL,
    floor_cached   bigint      NOT NULL,
    floor_units    bigint      NOT NULL,
    floor_cost     bigint      NOT NULL
);
CREATE INDEX usage_holds_by_org ON app.usage_holds (org_id);
CREATE INDEX usage_holds_by_silence ON app.usage_holds (kept_at);
COMMENT ON TABLE app.usage_holds IS 'Work that runs now and what it may use at most. One that its process has not confirmed for five minutes is booked by its floor.';

CREATE TABLE app.usage_bookings (
    reservation_id uuid        PRIMARY KEY,
    org_id         uuid        NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    admitted_at    timestamptz NOT NULL,
    booked_at      timestamptz NOT NULL,
    -- names stay readable after people and keys are gone, so neither is a foreign key
    user_id        uuid,
    api_key_id     uuid,
    source         text        NOT NULL,
    provider_slug  text        NOT NULL,
    model          text        NOT NULL,
    requests       bigint      NOT NULL,
    input_tokens   bigint      NOT NULL CHECK (input_tokens >= 0),
    output_tokens  bigint      NOT NULL CHECK (output_tokens >= 0),
    cached_tokens  bigint      NOT NULL CHECK (cached_tokens >= 0),
    units          bigint      NOT NULL CHECK (units >= 0),
    cost_micro_usd bigint      NOT NULL CHECK (cost_micro_usd >= 0),
    outcome        text        NOT NULL CHECK (outcome IN ('reported', 'floor', 'abandoned'))
);
CREATE INDEX usage_bookings_by_org ON app.usage_bookings (org_id, admitted_at);
COMMENT ON TABLE app.usage_bookings IS 'One row per model call, append-only and never changed by later prices. Everything else about use can be made again from it.';

CREATE TABLE app.usage_days (
    org_id         uuid     NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    day            date     NOT NULL,
    user_id        uuid,
    api_key_id     uuid,
    source         text     NOT NULL,
    provider_slug  text     NOT NULL,
    model          text     NOT NULL,
    stripe         smallint NOT NULL,
    requests       bigint   NOT NULL,
    input_tokens   bigint   NOT NULL,
    output_tokens  bigint   NOT NULL,
    cached_tokens  bigint   NOT NULL,
    units          bigint   NOT NULL,
    cost_micro_usd bigint   NOT NULL,
    CONSTRAINT usage_days_key UNIQUE NULLS NOT DISTINCT (org_id, day, user_id, api_key_id, source, provider_slug, model, stripe)
);
COMMENT ON TABLE app.usage_days IS 'Sums of bookings by day, for pages. A process adds to rows of its own stripe, so that none waits for another.';

CREATE TABLE app.usage_counters (
    org_id              uuid     NOT NULL REFERENCES app.organizations (id) ON DELETE CASCADE,
    -- org, user:<id> or key:<id>
    holder              text     NOT NULL,
    day                 date     NOT NULL,
    stripe              smallint NOT NULL,
    used_tokens         bigint   NOT NULL,
    used_cost_micro_usd bigint   NOT NULL,
    used_requests       bigint   NOT NULL,
    held_tokens         bigint   NOT NULL,
    held_cost_micro_usd bigint   NOT NULL,
    held_requests       bigint   NOT NULL,
    PRIMARY KEY (org_id, holder, day, stripe)
) WITH (fillfactor = 50);
COMMENT ON TABLE app.usage_counters IS 'What each holder of limits has used and holds, by day of admission and stripe. Limits are judged against the sums over a period.';

-- Admits a batch of work in its order, each piece whole or not at all (one round trip).
--
-- p_gates:   [{gate, org, holder, first, last}], one for each holder and period that limits something in the batch,
--            numbered from 1.
-- p_charges: [{id, org, user, key, source, provider, model, at, day, holders, gates, cap_gates, cap_kinds, cap_limits,
--            need, want, floor}]; need and want are [tokens, cost, requests], floor is [input, output, cached, units,
--            cost]; gates are all gates that it adds to, the three cap arrays its limits (kinds 1 to 3). An id that is
--            held already is measured anew and keeps its place in time.
-- Answers one row per charge, in order: what was granted (null = refused), and what was taken of each of its limits.
--
-- Holders with limits are locked in the order of their keys until the batch is committed; work without limits locks
-- nothing but its own rows.
CREATE FUNCTION app.usage_hold(p_owner uuid, p_stripe smallint, p_now timestamptz, p_gates jsonb, p_charges jsonb)
RETURNS TABLE (granted bigint[], taken bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    v_lock  bigint;
    v_one   record;
    v_grant bigint[];
    v_taken bigint[];
    v_value bigint;
    v_ids   uuid[] := '{}';
    v_t     bigint[] := '{}';
    v_c     bigint[] := '{}';
    v_r     bigint[] := '{}';
    v_tok   bigint[] := '{}';
    v_cost  bigint[] := '{}';
    v_req   bigint[] := '{}';
    g       integer;
BEGIN
    IF jsonb_array_length(p_gates) > 0 THEN
        FOR v_lock IN
            SELECT DISTINCT hashtextextended(org::text || '/' || holder, 1797) AS key
            FROM jsonb_to_recordset(p_gates) AS x(org uuid, holder text) ORDER BY key
        LOOP
            PERFORM pg_advisory_xact_lock(v_lock);
        END LOOP;
        SELECT array_agg(t ORDER BY gate), array_agg(c ORDER BY gate), array_agg(r ORDER BY gate)
        INTO v_tok, v_cost, v_req
        FROM (
            SELECT x.gate, coalesce(sum(n.used_tokens + n.held_tokens), 0)::bigint AS t,
                   coalesce(sum(n.used_cost_micro_usd + n.held_cost_micro_usd), 0)::bigint AS c,
                   coalesce(sum(n.used_requests + n.held_requests), 0)::bigint AS r
            FROM jsonb_to_recordset(p_gates) AS x(gate integer, org uuid, holder text, first date, last date)
            LEFT JOIN app.usage_counters n
              ON n.org_id = x.org AND n.holder = x.holder AND n.day BETWEEN x.first AND x.last
            GROUP BY x.gate
        ) sums;
    END IF;

    FOR v_one IN
        SELECT x.*, coalesce(h.tokens, 0) AS old_t, coalesce(h.cost_micro_usd, 0) AS old_c, coalesce(h.requests, 0) AS old_r
        FROM jsonb_to_recordset(p_charges) AS x(n integer, id uuid, org uuid, gates integer[], cap_gates integer[],
            cap_kinds integer[], cap_limits bigint[], need bigint[], want bigint[])
        LEFT JOIN app.usage_holds h ON h.org_id = x.org AND h.id = x.id
        ORDER BY x.n
    LOOP
        v_grant := v_one.want;
        v_taken := '{}';
        FOR i IN 1 .. coalesce(array_length(v_one.cap_gates, 1), 0) LOOP
            g := v_one.cap_gates[i];
            v_value := CASE v_one.cap_kinds[i]
                WHEN 1 THEN v_tok[g] - v_one.old_t
                WHEN 2 THEN v_cost[g] - v_one.old_c
                ELSE v_req[g] - v_one.old_r END;
            v_taken := v_taken || v_value;
            IF v_value + v_one.need[v_one.cap_kinds[i]] > v_one.cap_limits[i] THEN
                v_grant := NULL;
            ELSIF v_grant IS NOT NULL THEN
                v_grant[v_one.cap_kinds[i]] := least(v_grant[v_one.cap_kinds[i]], v_one.cap_limits[i] - v_value);
            END IF;
        END LOOP;
        IF v_grant IS NOT NULL THEN
            FOREACH g IN ARRAY v_one.gates LOOP
                v_tok[g] := v_tok[g] + v_grant[1] - v_one.old_t;
                v_cost[g] := v_cost[g] + v_grant[2] - v_one.old_c;
                v_req[g] := v_req[g] + v_grant[3] - v_one.old_r;
            END LOOP;
            v_ids := v_ids || v_one.id;
            v_t := v_t || v_grant[1];
            v_c := v_c || v_grant[2];
            v_r := v_r || v_grant[3];
        END IF;
        granted := v_grant;
        taken := v_taken;
        RETURN NEXT;
    END LOOP;

    WITH admitted AS (
        SELECT x.*, a.t, a.c, a.r, coalesce(h.stripe, p_stripe) AS place,
               a.t - coalesce(h.tokens, 0) AS more_t, a.c - coalesce(h.cost_micro_usd, 0) AS more_c,
               a.r - coalesce(h.requests, 0) AS more_r
        FROM jsonb_to_recordset(p_charges) AS x(id uuid, org uuid, "user" uuid, key uuid, source text, provider text,
            model text, at timestamptz, day date, holders text[], floor bigint[])
        JOIN unnest(v_ids, v_t, v_c, v_r) AS a(id, t, c, r) ON a.id = x.id
        LEFT JOIN app.usage_holds h ON h.org_id = x.org AND h.id = x.id
    ),
    held AS (
        INSERT INTO app.usage_holds (id, org_id, owner, user_id, api_key_id, source, provider_slug, model, admitted_at, day,
            kept_at, stripe, tokens, cost_micro_usd, requests, floor_input, floor_output, floor_cached, floor_units, floor_cost)
        SELECT id, org, p_owner, "user", key, source, provider, model, at, day, p_now, place, t, c, r,
               floor[1], floor[2], floor[3], floor[4], floor[5]
        FROM admitted ORDER BY id
        ON CONFLICT (id) DO UPDATE SET tokens = excluded.tokens, cost_micro_usd = excluded.cost_micro_usd,
            requests = excluded.requests, kept_at = excluded.kept_at, floor_input = excluded.floor_input,
            floor_output = excluded.floor_output, floor_cached = excluded.floor_cached,
            floor_units = excluded.floor_units, floor_cost = excluded.floor_cost
    )
    INSERT INTO app.usage_counters AS n (org_id, holder, day, stripe, used_tokens, used_cost_micro_usd, used_requests,
        held_tokens, held_cost_micro_usd, held_requests)
    SELECT org, holder, day, place, 0, 0, 0, sum(more_t), sum(more_c), sum(more_r)
    FROM admitted CROSS JOIN LATERAL unnest(holders) AS holder
    GROUP BY org, holder, day, place ORDER BY org, holder, day, place
    ON CONFLICT (org_id, holder, day, stripe) DO UPDATE SET
        held_tokens = n.held_tokens + excluded.held_tokens,
        held_cost_micro_usd = n.held_cost_micro_usd + excluded.held_cost_micro_usd,
        held_requests = n.held_requests + excluded.held_requests;
END;
$$;
COMMENT ON FUNCTION app.usage_hold IS 'Admits a batch of work against its limits; see the migration.';

-- Ends holds: each is booked (or only given back) with everything that is summed from it, exactly once, because it is
-- the removal of the hold that books. Answers how many there were.
--
-- p_entries: [{id, org, released, outcome, silent_since, used}]; used is [input, output, cached, units, cost].
-- silent_since: only a hold that was not confirmed since then.
CREATE FUNCTION app.usage_settle(p_now timestamptz, p_entries jsonb) RETURNS bigint
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
    counted AS (
        INSERT INTO app.usage_counters AS n (org_id, holder, day, stripe, used_tokens, used_cost_micro_usd, used_requests,
            held_tokens, held_cost_micro_usd, held_requests)
        SELECT org_id, holder, day, stripe,
               coalesce(sum(used[1] + used[2]) FILTER (WHERE reservation_id IS NOT NULL), 0),
               coalesce(sum(used[5]) FILTER (WHERE reservation_id IS NOT NULL), 0),
               coalesce(sum(requests) FILTER (WHERE reservation_id IS NOT NULL), 0),
               -sum(tokens), -sum(cost_micro_usd), -sum(requests)
        FROM closed LEFT JOIN booked ON reservation_id = id
        CROSS JOIN LATERAL (VALUES ('org'), ('user:' || user_id), ('key:' || api_key_id)) AS holders (holder)
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
COMMENT ON FUNCTION app.usage_settle IS 'Ends holds and books them, each exactly once; see the migration.';
